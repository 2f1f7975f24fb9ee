"""TensorFlow functions that are called often."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
import tree

from repertory.components import types

# XLA spends most of its time on LLVM passes from which what it compiles here
# does not gain: without them an update compiles 2.5 times as fast, and runs as
# fast.
_FAST_COMPILATION = '--xla_llvm_disable_expensive_passes'


_scope = threading.local()


@contextlib.contextmanager
def on_device(name: str | None) -> Iterator[None]:
  """Places what is made inside: variables, and `CompiledFunction`s.

  Args:
    name: Such as 'CPU:0' or 'GPU:1'; None for TensorFlow's choice.
  """
  before = getattr(_scope, 'device', None)
  _scope.device = name
  try:
    with tf.device(name):
      yield
  finally:
    _scope.device = before


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
      function: Maps nests of tensors to a nest of tensors. It is traced as it
        is: where control flow depends on tensors, it uses `tf.cond`,
        `tf.while_loop` or a `tf.function` of its own.
      signature: One nest of `tf.TensorSpec` per argument.
      jit_compile: Whether to compile with XLA: faster for small networks. XLA
        reads `XLA_FLAGS` once per process; what is compiled here asks it for
        fast compilation, unless the variable says otherwise by then.
    """
    if jit_compile:
      _ask_for_fast_compilation()
    output_structure: list[Any] = []
    self._device = getattr(_scope, 'device', None)

    def call(*leaves):
      output = function(*tree.unflatten_as(tuple(signature), leaves))
      output_structure[:] = [tree.map_structure(lambda leaf: None, output)]
      return tree.flatten(output)

    # AutoGraph would take five seconds to rewrite all that is called.
    self._call = tf.function(call, autograph=False, jit_compile=jit_compile)
    self._call = self._call.get_concrete_function(
      *(tf.TensorSpec(s.shape, s.dtype) for s in tree.flatten(signature))
    )
    self._output_structure = output_structure[0]

  def __call__(self, *leaves: tf.Tensor) -> list[tf.Tensor]:
    """Maps the leaves of all arguments to the leaves of the output."""
    if self._device is None:
      return self._call(*leaves)
    with tf.device(self._device):
      return self._call(*leaves)

  @property
  def output_structure(self) -> types.Nest:
    """The output, with None for each leaf."""
    return self._output_structure

  def unflatten(self, leaves: Sequence[Any]) -> types.Nest:
    """Gives leaves the structure of the output."""
    return tree.unflatten_as(self._output_structure, leaves)


def _ask_for_fast_compilation() -> None:
  flags = os.environ.get('XLA_FLAGS', '')
  if _FAST_COMPILATION not in flags:
    os.environ['XLA_FLAGS'] = f'{flags} {_FAST_COMPILATION}=true'.strip()
