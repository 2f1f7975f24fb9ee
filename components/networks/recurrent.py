"""Recurrent cores, unrolled over sequences of several episodes."""

from typing import Any, TypeAlias

import sonnet as snt
import tensorflow as tf
import tree

from repertory.components import types

# A `snt.RNNCore`, whose results are untyped.
Core: TypeAlias = Any

CORES = {'none': None, 'lstm': snt.LSTM, 'gru': snt.GRU}


def reset_where(first: tf.Tensor, state: types.Nest) -> types.Nest:
  """Resets the state to zeros in the rows where an episode starts.

  Args:
    first: Bool `[B]`.
    state: Nest `[B, ...]` of a core whose initial state is zeros.
  """

  def reset(leaf):
    ones = [1] * (len(leaf.shape) - 1)
    return tf.where(tf.reshape(first, [-1, *ones]), tf.zeros_like(leaf), leaf)

  return tree.map_structure(reset, state)


def unroll(
  core: Core, inputs: tf.Tensor, first: tf.Tensor, state: types.Nest
) -> tuple[tf.Tensor, types.Nest]:
  """Unrolls a core over time.

  Uses a loop of the graph, so tracing time does not depend on T.

  Args:
    core: A core whose initial state is zeros, like `snt.LSTM` and `snt.GRU`.
    inputs: `[T, B, D]`.
    first: Bool `[T, B]`, true where an episode starts and the state is reset.
    state: State before the first time step, `[B, ...]`.

  Returns:
    Outputs `[T, B, H]`, and the state after the last time step.
  """
  length = inputs.shape[0]
  if length is None:
    raise ValueError('inputs must have a known length, got shape [None, ...].')
  # Creates the core's variables, and infers its output's type.
  output, _ = core(inputs[0], state)
  inputs_by_time = tf.TensorArray(
    inputs.dtype, length, element_shape=inputs.shape[1:]
  ).unstack(inputs)
  first_by_time = tf.TensorArray(
    tf.bool, length, element_shape=first.shape[1:]
  ).unstack(first)
  outputs = tf.TensorArray(output.dtype, length, element_shape=output.shape)

  def step(time, outputs, state):
    state = reset_where(first_by_time.read(time), state)
    output, state = core(inputs_by_time.read(time), state)
    return time + 1, outputs.write(time, output), state

  _, outputs, state = tf.while_loop(
    lambda time, *_: time < length,
    step,
    (0, outputs, state),
    maximum_iterations=length,
  )
  return outputs.stack(), state


def make_core(kind: str, size: int) -> Core:
  """Creates a core; its first call creates the variables.

  Args:
    kind: 'lstm', 'gru', or 'none' for None.
    size: H, size of the output.

  Raises:
    ValueError: If the kind is unknown.
  """
  if kind not in CORES:
    raise ValueError(f"kind must be one of {list(CORES)}, got '{kind}'.")
  make = CORES[kind]
  return make(size) if make else None
