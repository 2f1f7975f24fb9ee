"""An update around an update, which learns from other rewards."""

import abc
from collections.abc import Mapping

import tensorflow as tf

from repertory.agents.wrappers import steps as steps_lib
from repertory.components import programs, types

# What agents that observe the action and the reward before call the rest.
OBSERVATION = 'observation'


class Rewards(tf.Module, abc.ABC):
  """Computes rewards from the steps of a batch, and learns from these.

  All that it knows is in its variables.
  """

  @abc.abstractmethod
  def __call__(
    self, steps: steps_lib.Steps
  ) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
    """Returns rewards `[N]`, and scalars by name that tell of them.

    Steps whose mask is false must have no influence.
    """


class RewardingUpdate(programs.Update):
  """Lets an agent's update learn from what `Rewards` makes of each batch.

  All variables of both are in checkpoints. What another run may begin with is
  the agent's alone: so it may be that of another wrapping, or of none.
  """

  def __init__(
    self,
    wrapped: programs.Update,
    rewards: Rewards,
    observes_previous_action_and_reward: bool = False,
  ):
    """Takes over both.

    Args:
      wrapped: The agent's.
      rewards: Has its say before the agent learns.
      observes_previous_action_and_reward: Whether the agent does; the rewards
        are computed without.
    """
    super().__init__()
    self._wrapped = wrapped
    self._rewards = rewards
    self._observes_previous = observes_previous_action_and_reward

  @property
  def exports(self):
    return self._wrapped.exports

  @property
  def learned(self):
    return self._wrapped.learned

  def __call__(self, sample: types.Sample) -> programs.UpdateResult:
    steps = steps_lib.take(sample)
    if self._observes_previous:
      steps = steps._replace(
        observation=steps.observation[OBSERVATION],
        next_observation=steps.next_observation[OBSERVATION],
      )
    rewards, metrics = self._rewards(steps)
    result = programs.call_update(
      self._wrapped, steps_lib.with_rewards(sample, rewards)
    )
    return result._replace(metrics={**result.metrics, **metrics})
