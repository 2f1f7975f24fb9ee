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
import tensorflow as tf

from repertory.components import compilation, numpy_translations

# NumPy may take so much of TensorFlow's time, which grows more within a run,
# whose other parts take the caches. Policies of small networks are at 0.6 to
# 1.0, or from 1.15 on; so none changes sides between two runs.
_SHARE_OF_TIME = 1.08
_NUM_MEASUREMENTS = 20
# For one update of DQN, as in its paper. To read the variables takes NumPy half
# of what it saves in a call.
_CALLS_BETWEEN_UPDATES = 4

# Number of comparisons of values, largest change of the variables for them, and
# largest rounding error as a share of the largest number of a leaf.
_NUM_COMPARISONS = 3
_LARGEST_CHANGE = 0.1
_SHARE_OF_ROUNDING = 1e-3


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
    self._handles = [handle for handle, _ in translation.handles]
    self._read = compilation.compile_reading(translation.handles)
    self._compute = translation.compute
    self._absent = compiled.absent

  def forget(self) -> None:
    """Reads the variables anew before the next call."""
    self._read_at = None

  def is_like(self, compiled: compilation.CompiledFunction) -> bool:
    """Returns whether it computes the same values as the original function.

    Both get random arguments and randomly changed variables, because initial
    zeros that multiply a part would hide its differences.

    Args:
      compiled: The original function.

    Raises:
      tf.errors.InvalidArgumentError: If TensorFlow refuses the random integers,
        such as indices out of range.
    """
    random = np.random.default_rng(0)
    variables = [
      _perturb(random, one.numpy()).astype(one.dtype.as_numpy_dtype)
      for one in self._read()
    ]
    other = compiled.with_variables(
      dict(zip(map(id, self._handles), variables))
    )
    for _ in range(_NUM_COMPARISONS):
      leaves = [_draw(random, spec) for spec in compiled.argument_specs]
      theirs = other(*leaves)
      if not all(map(_are_alike, self._call(leaves, variables), theirs)):
        return False
    return True

  def __call__(self, *leaves: np.ndarray) -> list[Any]:
    """Maps the leaves of all arguments to the leaves of the output."""
    version = self._version()
    if version != self._read_at:
      self._read_at = version
      self._variables = [one.numpy() for one in self._read()]
    return self._call(leaves, self._variables)

  def _call(self, leaves: Sequence[np.ndarray], variables: Sequence) -> list:
    outputs = self._compute(*leaves, *variables)
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
    None if TensorFlow is faster, or NumPy cannot or computes something else,
    or if the function is eager.
  """
  if compiled.is_eager:
    return None
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
  try:
    if not translated.is_like(compiled):
      return None
  except tf.errors.InvalidArgumentError:
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


def _draw(random: np.random.Generator, spec: tf.TensorSpec) -> np.ndarray:
  """Draws an argument: normal floats, bits, or integers that are 0 or 1."""
  dtype, shape = spec.dtype.as_numpy_dtype, spec.shape.as_list()
  if spec.dtype.is_floating:
    return random.normal(size=shape).astype(dtype)
  if dtype == np.uint64:  # Seeds of random streams, which use all bits.
    return random.integers(2**64, size=shape, dtype=dtype)
  return random.integers(2, size=shape).astype(dtype)


def _perturb(random: np.random.Generator, value: np.ndarray) -> np.ndarray:
  """Adds positive noise to floats, so that variances stay positive."""
  if not np.issubdtype(value.dtype, np.floating):
    return value
  return value + random.uniform(0, _LARGEST_CHANGE, value.shape)


def _are_alike(ours: Any, theirs: Any) -> bool:
  """Returns whether two leaves are equal, floats up to rounding."""
  if ours is None or theirs is None:
    return ours is theirs
  ours, theirs = np.asarray(ours), np.asarray(theirs)
  if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
    return False
  if not np.issubdtype(ours.dtype, np.floating):
    return np.array_equal(ours, theirs)
  finite = np.abs(theirs[np.isfinite(theirs)])
  size = finite.max() if finite.size else 0.0
  return np.allclose(
    ours, theirs, rtol=0, atol=_SHARE_OF_ROUNDING * size, equal_nan=True
  )
