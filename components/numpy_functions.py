"""Small TensorFlow functions, run by NumPy.

TensorFlow takes more than a microsecond for each operation of a graph, however
little there is to compute, and NumPy half of that. So the policy of a small
network, some forty operations on a few rows, chooses its actions faster.

What NumPy computes is the same, but for rounding.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from repertory.components import compilation, numpy_translations

# NumPy may take so much of TensorFlow's time, which grows more within a run,
# whose other parts take the caches. Policies of small networks are at 0.6 to
# 1.0, or from 1.15 on; so none changes sides between two runs.
_SHARE_OF_TIME = 1.08
_NUM_MEASUREMENTS = 20
# For one update of DQN, as in its paper. To read the variables takes NumPy half
# of what it saves in a call.
_CALLS_BETWEEN_UPDATES = 4


class NumpyFunction:
  """A compiled function of arrays, called in the same way."""

  def __init__(
    self, compiled: compilation.CompiledFunction, version: Callable[[], int]
  ):
    """Translates it.

    Args:
      compiled: The function; it may read variables, and change nothing.
      version: Tells another number when variables have changed.

    Raises:
      CannotTranslateError: Saying what NumPy cannot do.
    """
    self._version = version
    self._read_at: int | None = None
    self._variables: Sequence[np.ndarray] = ()
    translation = numpy_translations.Translation(compiled.function)
    self._read = compilation.compile_reading(translation.handles)
    self._compute = translation.compute
    self._absent = compiled.absent

  def forget(self) -> None:
    """Reads the variables anew before the next call."""
    self._read_at = None

  def __call__(self, *leaves: np.ndarray) -> list[Any]:
    """Maps the leaves of all arguments to the leaves of the output."""
    version = self._version()
    if version != self._read_at:
      self._read_at = version
      self._variables = [one.numpy() for one in self._read()]
    outputs = self._compute(*leaves, *self._variables)
    for place in self._absent:
      outputs.insert(place, None)
    return outputs


def find_faster(
  compiled: compilation.CompiledFunction, version: Callable[[], int]
) -> NumpyFunction | None:
  """Returns a function as NumPy runs it, if that is faster.

  Args:
    compiled: See `NumpyFunction`.
    version: Likewise.

  Returns:
    None if TensorFlow is better, or NumPy cannot.
  """
  if not compilation.WRAPS_OPERATIONS:  # There is an accelerator.
    return None
  try:
    translated = NumpyFunction(compiled, version)
  except numpy_translations.CannotTranslateError:
    return None
  zeros = [
    np.zeros(spec.shape, spec.dtype.as_numpy_dtype)
    for spec in compiled.argument_specs
  ]
  if not _are_alike(translated(*zeros), compiled(*zeros)):
    return None
  ours, theirs = [], []
  for _ in range(_NUM_MEASUREMENTS):
    translated.forget()
    for function, seconds in ((translated, ours), (compiled, theirs)):
      start = time.perf_counter()
      for _ in range(_CALLS_BETWEEN_UPDATES):
        function(*zeros)
      seconds.append(time.perf_counter() - start)
  return translated if min(ours) < _SHARE_OF_TIME * min(theirs) else None


def _are_alike(ours: Sequence, theirs: Sequence) -> bool:
  """Returns whether outputs have the same dtypes and shapes."""
  forms = [
    [
      None if leaf is None else (np.asarray(leaf).dtype, np.shape(leaf))
      for leaf in outputs
    ]
    for outputs in (ours, theirs)
  ]
  return forms[0] == forms[1]
