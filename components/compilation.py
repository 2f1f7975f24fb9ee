"""TensorFlow functions that are called often."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
import tree

from repertory.components import types


class CompiledFunction:
  """A function compiled for one signature, called with flat lists.

  Calling a concrete function with tensors in a row takes half the time of
  calling it with nests, and a fourth of calling a polymorphic one.
  """

  def __init__(
    self,
    function: Callable[..., types.Nest],
    signature: Sequence[types.Nest],
    jit_compile: bool,
  ):
    """Traces the function, which creates the variables that it makes.

    Args:
      function: Maps nests of tensors to a nest of tensors.
      signature: One nest of `tf.TensorSpec` per argument.
      jit_compile: Whether to compile with XLA: faster for small networks.
    """
    output_structure: list[Any] = []

    def call(*leaves):
      output = function(*tree.unflatten_as(tuple(signature), leaves))
      output_structure[:] = [tree.map_structure(lambda leaf: None, output)]
      return tree.flatten(output)

    self._call = tf.function(call, jit_compile=jit_compile)
    self._call = self._call.get_concrete_function(
      *(tf.TensorSpec(s.shape, s.dtype) for s in tree.flatten(signature))
    )
    self._output_structure = output_structure[0]

  def __call__(self, *leaves: tf.Tensor) -> list[tf.Tensor]:
    """Maps the leaves of all arguments to the leaves of the output."""
    return self._call(*leaves)

  @property
  def output_structure(self) -> types.Nest:
    """The output, with None for each leaf."""
    return self._output_structure

  def unflatten(self, leaves: Sequence[Any]) -> types.Nest:
    """Gives leaves the structure of the output."""
    return tree.unflatten_as(self._output_structure, leaves)
