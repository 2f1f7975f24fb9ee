"""Recurrent cores, and networks for single steps and sequences."""

from collections.abc import Callable
from typing import Any, TypeAlias

import sonnet as snt
import tensorflow as tf
import tree

from repertory.components import specs, types
from repertory.components.actions import action_masks
from repertory.components.config import choices
from repertory.components.networks import gtrxl, masked_network, torsos
from repertory.components.runtime import data_parallel, numpy_functions

# With the interface of `snt.RNNCore`, whose results are untyped.
Core: TypeAlias = Any

CORES = {
  'none': None,
  'lstm': snt.LSTM,
  'gru': snt.GRU,
  'gtrxl': gtrxl.GTrXL,
}


def reset_where(first: tf.Tensor, state: types.Nest) -> types.Nest:
  """Resets the state, a nest of `[B, ...]`, to zeros in rows that are first."""

  def reset(leaf):
    ones = [1] * (len(leaf.shape) - 1)
    return tf.where(tf.reshape(first, [-1, *ones]), tf.zeros_like(leaf), leaf)

  return tree.map_structure(reset, state)


def unroll(
  core: Core, inputs: tf.Tensor, first: tf.Tensor, state: types.Nest
) -> tuple[tf.Tensor, types.Nest]:
  """Unrolls a core over time.

  Calls the core's own `unroll` if it has one, like `GTrXL`. Otherwise uses a
  loop of the graph, so tracing time does not depend on T.

  Args:
    core: A core whose initial state is zeros, like `snt.LSTM` and `snt.GRU`.
    inputs: `[T, B, D]`, T known.
    first: Bool `[T, B]`, true where an episode starts and the state is reset.
    state: State before the first time step, `[B, ...]`.

  Returns:
    Outputs `[T, B, H]`, and the state after the last time step.
  """
  if hasattr(core, 'unroll'):
    return core.unroll(inputs, first, state)
  length = inputs.shape[0]
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


def make_core(kind: str, size: int, **options: int) -> Core:
  """Creates a core with outputs of a size, or None.

  Args:
    kind: 'lstm', 'gru', 'gtrxl' or 'none' (None).
    size: Size of the outputs.
    **options: Further arguments of `GTrXL`; none for the others.

  Raises:
    ValueError: If the kind is unknown.
  """
  choices.check('kind', kind, CORES)
  make = CORES[kind]
  return make(size, **options) if make else None


class SequenceNetwork(snt.Module):
  """Network of a torso, an optional recurrent core, and a head.

  The same layers process a single step in acting and a sequence in learning,
  where torso and head process all time steps at once.

  Attributes:
    masks: Masks of the head's outputs, see `masked_network`; None for none.
  """

  masks: action_masks.ActionMasks | None = None

  def __init__(
    self,
    torso: Callable[[types.Nest], tf.Tensor],
    core: Core | None,
    head: Callable[[tf.Tensor], types.Nest],
  ):
    """Takes the parts.

    Args:
      torso: Maps observations `[B, ...]` to features `[B, D]`.
      core: Core whose initial state is zeros; None for a feed-forward network.
      head: Maps features `[B, H]` to a nest of outputs `[B, ...]`.
    """
    super().__init__(name='sequence_network')
    self._torso = torso
    self._core = core
    self._head = head

  def initial_state(self, batch_size: int) -> types.Nest:
    """Returns the initial recurrent state, `[B, ...]`; () without a core."""
    return self._core.initial_state(batch_size) if self._core else ()

  def state_spec(self) -> types.Nest:
    """Returns the array specs of the recurrent state, without a batch axis."""
    return tree.map_structure(
      lambda leaf: specs.Array(leaf.shape[1:], leaf.dtype.as_numpy_dtype),
      self.initial_state(1),
    )

  def create_variables(self, observation_spec: types.Nest) -> None:
    """Creates all variables by a single step, given unbatched array specs."""
    torsos.create_variables(
      lambda observation: self.step(observation, self.initial_state(1)),
      observation_spec,
    )

  def step(
    self, observation: types.Nest, state: types.Nest
  ) -> tuple[types.Nest, types.Nest]:
    """Maps observations `[B, ...]` and state to outputs and the next state."""
    features = self._torso(observation)  # [B, D]
    if self._core is not None:
      features, state = self._core(features, state)  # [B, H]
    return self._apply_head(features, self._read_mask(observation)), state

  def in_numpy(self, weights: numpy_functions.Weights) -> Callable:
    """Returns the NumPy version of torso and head, see `numpy_functions`."""
    if self._core is not None:
      raise numpy_functions.NoNumpyError('there is a core.')
    if self.masks is not None:
      return masked_network.masked_in_numpy(
        self._torso, self._head, self.masks, weights
      )
    parts = snt.Sequential([self._torso, self._head])
    return numpy_functions.forward(parts, weights)

  def unroll(
    self, observation: types.Nest, first: tf.Tensor, state: types.Nest
  ) -> tuple[types.Nest, types.Nest]:
    """Unrolls the network over sequences.

    Args:
      observation: `[T, B, ...]`.
      first: Bool `[T, B]`, true where an episode starts and the state is reset.
      state: State before the first observation, `[B, ...]`.

    Returns:
      Outputs `[T, B, ...]`, and the state after the last observation.
    """
    unroll = data_parallel.split_rows(self._unroll, (1, 1, 0), (1, 0))
    return unroll(observation, first, state)

  def _unroll(
    self, observation: types.Nest, first: tf.Tensor, state: types.Nest
  ) -> tuple[types.Nest, types.Nest]:
    features = snt.BatchApply(self._torso)(observation)  # [T, B, D]
    if self._core is not None:
      features, state = unroll(self._core, features, first, state)
    apply_head = snt.BatchApply(self._apply_head)
    return apply_head(features, self._read_mask(observation)), state

  def _apply_head(
    self, features: tf.Tensor, mask: tf.Tensor | None
  ) -> types.Nest:
    return masked_network.apply_head(self._head, features, mask)

  def _read_mask(self, observation: types.Nest) -> tf.Tensor | None:
    """Returns action masks `[..., P]` of observations `[..., ...]`, if any."""
    return None if self.masks is None else self.masks(observation)
