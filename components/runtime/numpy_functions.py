"""Small policies, run by NumPy.

TensorFlow takes more than a microsecond for each operation of a graph, however
small, and NumPy half of that. So policies of discrete actions with small
networks of `Linear` layers run faster in NumPy: they and their networks define
`in_numpy`, a NumPy version of `step` or `__call__`. Results are the same up to
rounding.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import dm_env
import numpy as np
import sonnet as snt
import tensorflow as tf
import tree

from repertory.components.runtime import compilation

# Maximum number of multiplications in all matrix products of a call, above
# which NumPy has no advantage, and in a matrix–vector product, above which BLAS
# uses threads that cost more than the product.
_MAX_PRODUCTS, _MAX_PRODUCTS_OF_VECTOR = 100_000, 9_000

_LAST = int(dm_env.StepType.LAST)
_ZERO = np.zeros([1], np.float32)  # Faster than a Python number.
_ACTIVATIONS: dict[Any, Callable[[np.ndarray], np.ndarray]] = {
  tf.nn.relu: lambda x: np.maximum(x, _ZERO),
  tf.tanh: np.tanh,
}


class NoNumpyError(Exception):
  """A module has no NumPy version."""


class Weights:
  """Values of the variables that a NumPy version uses.

  Attributes:
    num_rows: B, the batch size.
    arrays: The values, in the order of `add`; the list stays the same.
  """

  def __init__(self, num_rows: int):
    self.num_rows = num_rows
    self.arrays: list[np.ndarray] = []
    self._handles: list[tuple[tf.Tensor, tf.DType]] = []
    self._read: Callable[[], list[tf.Tensor]] | None = None
    self._num_products = 0

  def add(self, variable: tf.Variable) -> int:
    """Adds a variable; returns its index in `arrays`."""
    self._handles.append((variable.handle, variable.dtype))
    if variable.shape.rank == 2:
      self._num_products += self.num_rows * variable.shape.num_elements()
      if self._num_products > _MAX_PRODUCTS:
        raise NoNumpyError('there is too much to compute.')
    return len(self._handles) - 1

  def read(self) -> None:
    """Reads the variables."""
    if self._read is None:
      self._read = compilation.compile_variable_reads(self._handles)
    self.arrays[:] = [value.numpy() for value in self._read()]


def forward(module: Any, weights: Weights) -> Callable[[Any], np.ndarray]:
  """Returns the NumPy version of a module, or raises NoNumpyError.

  Layers map arrays `[B, D]`, networks map lists of the leaves of observations.
  Other modules than Sonnet's define it as `in_numpy`, which subclasses do not
  inherit, because they may compute something else.
  """
  if type(module) is snt.Linear and module.with_bias:
    return _linear(module, weights)
  if type(module) is snt.nets.MLP:
    pairs = [(layer, module._activation) for layer in module._layers]
    layers = list(itertools.chain(*pairs))
    return _chain(layers if module._activate_final else layers[:-1], weights)
  if type(module) is snt.Sequential:
    return _chain(module._layers, weights)
  in_numpy = vars(type(module)).get('in_numpy')
  if in_numpy is None:
    raise NoNumpyError(f'{type(module).__name__} has no in_numpy.')
  return in_numpy(module, weights)


def _chain(layers: Sequence[Any], weights: Weights) -> Callable:
  functions = [_ACTIVATIONS.get(one) or forward(one, weights) for one in layers]

  def call(x):
    for function in functions:
      x = function(x)
    return x

  return call


def _linear(layer: snt.Linear, weights: Weights) -> Callable:
  arrays, i, j = weights.arrays, weights.add(layer.w), weights.add(layer.b)
  is_vector = 1 in (weights.num_rows, layer.output_size)
  num_products = layer.w.shape.num_elements() * weights.num_rows
  if is_vector and num_products > _MAX_PRODUCTS_OF_VECTOR:
    return lambda x: np.einsum('bi,ij->bj', x, arrays[i]) + arrays[j]
  return lambda x: x.dot(arrays[i]) + arrays[j]


def find(
  policy: Any,
  compiled: compilation.CompiledFunction,
  num_rows: int,
  version: Callable[[], int],
  *,
  with_extras: bool = True,
) -> Callable[..., list[np.ndarray]] | None:
  """Returns a NumPy version of a policy's compiled `act`, or None.

  None if the policy has no NumPy version, or one that gives other results for
  random arguments; if `compiled` is eager, or with an accelerator.

  Args:
    policy: The policy. Its `in_numpy` maps `Weights` to a function from lists
      of the leaves of observation and state to the action, a list of the leaves
      of the extras, and a list of those of the next state.
    compiled: Maps the leaves of observation, step type and state to those of
      action, extras and next state.
    num_rows: B.
    version: Returns a new number after variables have changed.
    with_extras: Whether `compiled` returns extras.
  """
  # Without wrapped operations there is an accelerator.
  if compiled.is_eager or not compilation.WRAPS_OPERATIONS:
    return None
  weights, read_at = Weights(num_rows), None
  step: Any = None
  num_state = len(tree.flatten(policy.initial_state([0])))

  def act(*leaves):
    nonlocal read_at
    if version() != read_at:
      read_at = version()
      weights.read()
    *observation, step_type = leaves[: len(leaves) - num_state]
    state = leaves[len(leaves) - num_state :]
    with np.errstate(all='ignore'):  # TensorFlow does not warn.
      action, extras, after = step(observation, state)
    if _LAST in step_type.tolist():
      ended = step_type == _LAST
      after = [np.where(ended, *pair) for pair in zip(state, after)]
    action = (
      [action] if isinstance(action, np.ndarray) else tree.flatten(action)
    )
    return [*action, *(extras if with_extras else ()), *after]

  try:
    step = forward(policy, weights)
    random = np.random.default_rng(0)
    for _ in range(3):
      leaves = [_draw(random, spec) for spec in compiled.argument_specs]
      ours, theirs = act(*leaves), compiled(*leaves)
      if len(ours) != len(theirs) or not all(map(_are_alike, ours, theirs)):
        return None
  except Exception:  # TensorFlow acts, whatever the reason.
    return None
  return act


def _draw(random: np.random.Generator, spec: tf.TensorSpec) -> np.ndarray:
  """Draws an argument: normal floats, bits, or integers that are 0 or 1."""
  dtype, shape = spec.dtype.as_numpy_dtype, spec.shape.as_list()
  if spec.dtype.is_floating:
    return random.normal(size=shape).astype(dtype)
  if dtype == np.uint64:  # Seeds of random streams, which use all bits.
    return random.integers(2**64, size=shape, dtype=dtype)
  return random.integers(2, size=shape).astype(dtype)


def _are_alike(ours: np.ndarray, theirs: tf.Tensor) -> bool:
  """Returns whether two leaves are equal, floats up to rounding."""
  expected = theirs.numpy()
  if (ours.dtype, ours.shape) != (expected.dtype, expected.shape):
    return False
  if not np.issubdtype(ours.dtype, np.floating):
    return np.array_equal(ours, expected)
  size = np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0)
  return np.allclose(ours, expected, rtol=0, atol=1e-3 * size, equal_nan=True)
