"""Graph loops of a fixed number of steps that stack the outputs."""

from collections.abc import Callable

import tensorflow as tf
import tree

from repertory.components import types
from repertory.components.runtime import compilation


def scan(
  step: Callable[[tf.Tensor, types.Nest], tuple[types.Nest, types.Nest]],
  carry: types.Nest,
  length: int,
) -> tuple[types.Nest, types.Nest]:
  """Runs a step function repeatedly, as `jax.lax.scan` does.

  It meets XLA's requirements for loops: lengths and all shapes are static.

  Args:
    step: Maps step number and carry to the new carry and the step's output.
    carry: The initial carry.
    length: Number of steps, at least 1.

  Returns:
    The final carry, and the stacked outputs, `[length, ...]`.
  """
  if tf.executing_eagerly():
    steps = []
    for i in range(length):
      carry, kept = step(tf.constant(i), carry)
      steps.append(kept)
    return carry, tree.map_structure(lambda *leaves: tf.stack(leaves), *steps)
  signature = compilation.specs_of(carry)
  _, specs = compilation.trace(step, (tf.TensorSpec([], tf.int32), signature))
  arrays = make_arrays(specs, length)

  def body(i, leaves, arrays):
    following, kept = step(i, tree.unflatten_as(carry, leaves))
    tree.assert_same_structure(carry, following)
    return i + 1, tree.flatten(following), write(arrays, i, kept)

  _, leaves, arrays = tf.while_loop(
    lambda i, *_: i < length,
    body,
    (0, tree.flatten(carry), arrays),
    maximum_iterations=length,
    parallel_iterations=1,
  )
  return tree.unflatten_as(carry, leaves), stack(arrays, specs)


def make_arrays(specs: types.Nest, size: int) -> list[tf.TensorArray]:
  """Creates a TensorArray for each leaf of a nest of specs."""
  return [
    tf.TensorArray(
      spec.dtype, size, element_shape=spec.shape, clear_after_read=False
    )
    for spec in tree.flatten(specs)
  ]


def write(
  arrays: list[tf.TensorArray], place: tf.Tensor, nest: types.Nest
) -> list[tf.TensorArray]:
  """Writes the leaves of a nest at one place of their arrays."""
  leaves = tree.flatten(nest)
  return [array.write(place, leaf) for array, leaf in zip(arrays, leaves)]


def stack(arrays: list[tf.TensorArray], like: types.Nest) -> types.Nest:
  """Returns the stacked arrays in the structure of a nest."""
  return tree.unflatten_as(like, [array.stack() for array in arrays])


def zero_unless(condition: tf.Tensor, nest: types.Nest) -> types.Nest:
  """Zeros entries unless a condition holds, on the first axes of each leaf."""

  def choose(leaf: tf.Tensor) -> tf.Tensor:
    ones = [1] * (len(leaf.shape) - len(condition.shape))
    shaped = tf.reshape(condition, [*condition.shape, *ones])
    return tf.where(shaped, leaf, tf.zeros_like(leaf))

  return tree.map_structure(choose, nest)


def merge_axes(leaf: tf.Tensor) -> tf.Tensor:
  """Maps `[K, T, ...]` to `[K · T, ...]`."""
  return tf.reshape(leaf, [leaf.shape[0] * leaf.shape[1], *leaf.shape[2:]])
