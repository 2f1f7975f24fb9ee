"""Recurrent networks for single steps and sequences."""

from collections.abc import Callable

import sonnet as snt
import tensorflow as tf
import tree

from repertory.components import specs, types
from repertory.components.networks import (
  initialization,
  normalization,
  recurrent,
)
from repertory.components.runtime import data_parallel


class SequenceNetwork(snt.Module):
  """Network of a torso, an optional recurrent core, and a head.

  The same layers process a single step in acting and a sequence in learning,
  where torso and head process all time steps at once.

  Attributes:
    normalizer: Normalizer of observations, which the learner updates; None for
      no normalization.
  """

  def __init__(
    self,
    torso: Callable[[types.Nest], tf.Tensor],
    core: recurrent.Core | None,
    head: Callable[[tf.Tensor], types.Nest],
    normalizer: normalization.ObservationNormalizer | None = None,
    name: str = 'sequence_network',
  ):
    """Initializes the network.

    Args:
      torso: Maps observations `[B, ...]` to features `[B, D]`.
      core: Core whose initial state is zeros; None for a feed-forward network.
      head: Maps features `[B, H]` to a nest of outputs `[B, ...]`.
      normalizer: Normalizer of observations before the torso; None for none.
    """
    super().__init__(name=name)
    self._torso = torso
    self._core = core
    self._head = head
    self.normalizer = normalizer

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
    """Creates all variables by a single step.

    Args:
      observation_spec: Nest of array specs, without a batch axis.
    """
    initialization.create_variables(
      lambda observation: self.step(observation, self.initial_state(1)),
      observation_spec,
    )

  def step(
    self, observation: types.Nest, state: types.Nest
  ) -> tuple[types.Nest, types.Nest]:
    """Maps observations `[B, ...]` and state to outputs and the next state."""
    features = self._extract(observation)  # [B, D]
    if self._core is not None:
      features, state = self._core(features, state)  # [B, H]
    return self._head(features), state

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
    features = snt.BatchApply(self._extract)(observation)  # [T, B, D]
    if self._core is not None:
      features, state = recurrent.unroll(self._core, features, first, state)
    return snt.BatchApply(self._head)(features), state

  def _extract(self, observation: types.Nest) -> tf.Tensor:
    """Maps observations `[B, ...]` to features `[B, D]`."""
    if self.normalizer is not None:
      observation = self.normalizer(observation)
    return self._torso(observation)
