"""Tensor wrapper that adds the previous action and reward to observations."""

from typing import NamedTuple

import tensorflow as tf
from dm_env import specs

from repertory.environments.batches import layout
from repertory.environments.batches.layout import Nest
from repertory.environments.tensor import environment as environment_lib
from repertory.environments.wrappers import previous_action


class PreviousActionCore(NamedTuple):
  """State of the wrapper."""

  core: Nest  # Core of the environment, a nest of tensors `[B, ...]`.
  action: Nest  # The previous action, a nest of tensors `[B, ...]`.
  reward: tf.Tensor  # The previous reward, float32 `[B]`.


class TensorPreviousActionAndReward(environment_lib.DerivedEnvironment):
  """Adds the previous action and reward to observations.

  The observation equals that of the batch wrapper
  `previous_action.PreviousActionAndReward`: a dict of 'observation',
  'previous_action' and 'previous_reward'. Where the timestep is FIRST, actions
  are zeros, or the nearest values within the spec's bounds, and rewards are 0.
  """

  def observation_spec(self) -> dict[str, Nest]:
    """Returns the dict of specs; the reward's bounds include 0."""
    return {
      'observation': self._host.observation_spec(),
      'previous_action': self.action_spec(),
      'previous_reward': previous_action.include_zero(self.reward_spec()),
    }

  def initial_core(self, batch_size: int) -> PreviousActionCore:
    return self._begin(self._host.initial_core(batch_size), batch_size)

  def start(
    self, counters: tf.Tensor, before: PreviousActionCore | None
  ) -> tuple[PreviousActionCore, tf.Tensor]:
    core = None if before is None else before.core
    core, counters = self._host.start(counters, core)
    return self._begin(core, counters.shape[0]), counters

  def _begin(self, core: Nest, size: int) -> PreviousActionCore:
    """Returns the core at a FIRST timestep of `size` rows."""

    def tile(spec: specs.Array) -> tf.Tensor:
      initial = layout.make_initial_action(spec)
      return tf.broadcast_to(initial, [size, *spec.shape])

    action = tf.nest.map_structure(tile, self.action_spec())
    return PreviousActionCore(core, action, tf.zeros([size]))

  def advance(
    self, core: PreviousActionCore, action: Nest, counters: tf.Tensor
  ) -> environment_lib.Advance:
    advance = self._host.advance(core.core, action, counters)
    return advance._replace(
      core=PreviousActionCore(advance.core, action, advance.reward)
    )

  def observe(self, core: PreviousActionCore) -> dict[str, Nest]:
    return {
      'observation': self._host.observe(core.core),
      'previous_action': core.action,
      'previous_reward': core.reward,
    }
