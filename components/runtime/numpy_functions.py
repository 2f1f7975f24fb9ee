"""Small TensorFlow functions, run by NumPy.

TensorFlow takes more than a microsecond for each operation of a graph, however
small, and NumPy half of that. So the policy of a small network, some forty
operations on a few rows, runs faster in NumPy.

Results are the same up to rounding.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from repertory.components.runtime import compilation, numpy_translations

# Maximum time of NumPy relative to TensorFlow, whose time grows more within a
# run, where other parts use the caches. Policies of small networks are at 0.6
# to 1.0, or from 1.15 on, so the choice is stable between runs.
_SHARE_OF_TIME = 1.08
_NUM_MEASUREMENTS = 20
# Per update, as in the DQN paper. Reading the variables costs NumPy half of
# what it saves in a call.
_CALLS_BETWEEN_UPDATES = 4

# Number of comparisons of values, largest perturbation of the variables for
# them, and largest rounding error relative to the largest number of a leaf.
_NUM_COMPARISONS = 3
_LARGEST_CHANGE = 0.1
_SHARE_OF_ROUNDING = 1e-3


class NumpyFunction:
  """A NumPy version of a compiled function, with the same interface."""

  def __init__(
    self, compiled: compilation.CompiledFunction, version: Callable[[], int]
  ):
    """Translates a compiled function.

    Args:
      compiled: The function; it may read variables, but have no side effects.
      version: Returns a new number after variables have changed.

    Raises:
      CannotTranslateError: If NumPy cannot run it, with the reason.
    """
    self._version = version
    self._read_at: int | None = None
    self._variables: Sequence[np.ndarray] = ()
    translation = numpy_translations.Translation(compiled.function)
    self._handles = [handle for handle, _ in translation.handles]
    self._read = compilation.compile_variable_reads(translation.handles)
    self._compute = translation.compute
    self._absent = compiled.absent

  def forget(self) -> None:
    """Invalidates the cached variables."""
    self._read_at = None

  def is_like(self, compiled: compilation.CompiledFunction) -> bool:
    """Returns whether it computes the same values as the original function.

    Both get random arguments and perturbed variables, because initial zeros
    that multiply a part would hide its differences.

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
  """Returns a NumPy version of a function, if that is faster.

  Args:
    compiled: See `NumpyFunction`.
    version: Likewise.

  Returns:
    None if TensorFlow is faster, if NumPy cannot run the function or gives
    other results, or if the function is eager.
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
