"""Small TensorFlow functions, run by NumPy.

TensorFlow takes more than a microsecond for each operation of a graph, however
little there is to compute, and NumPy half of that. So the policy of a small
network, some forty operations on a few rows, chooses its actions sooner.

What NumPy computes is the same, but for rounding.
"""

import time
from collections.abc import Callable

import numpy as np

from repertory.components import compilation, numpy_translations

# NumPy must be sooner by so much. Policies of small networks take it 0.5 to 0.8
# of TensorFlow's time, or 1.1 to 1.2; so none changes sides between two runs.
_SHARE_OF_TIME = 0.95
_NUM_MEASUREMENTS = 50


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
    self._variables: list[np.ndarray] = []
    translation = numpy_translations.Translation(compiled.function)
    self._handles = translation.handles
    self._compute = translation.compute
    self._absent = compiled.absent

  def __call__(self, *leaves: np.ndarray) -> list[np.ndarray | None]:
    """Maps the leaves of all arguments to the leaves of the output."""
    version = self._version()
    if version != self._read_at:
      self._read_at = version
      self._variables = [
        compilation.read_variable(handle, dtype)
        for handle, dtype in self._handles
      ]
    outputs = self._compute(*leaves, *self._variables)
    for place in self._absent:
      outputs.insert(place, None)
    return outputs


def find_faster(
  compiled: compilation.CompiledFunction, version: Callable[[], int]
) -> NumpyFunction | None:
  """Returns a function as NumPy runs it, if that is clearly sooner.

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
  ours, theirs = [], []
  for _ in range(_NUM_MEASUREMENTS):
    for function, seconds in ((translated, ours), (compiled, theirs)):
      start = time.perf_counter()
      function(*zeros)
      seconds.append(time.perf_counter() - start)
  return translated if min(ours) < _SHARE_OF_TIME * min(theirs) else None
