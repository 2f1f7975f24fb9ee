"""Update that relabels rewards of batches by a reward model."""

import abc
from collections.abc import Mapping

import tensorflow as tf

from repertory.agents.reward_models import steps as steps_lib
from repertory.components import interfaces, types

# Key of the observation for agents that also observe action and reward.
OBSERVATION = 'observation'


class Rewards(tf.Module, abc.ABC):
  """Interface of reward models, which relabel batches and learn from them.

  Their whole state is in variables.
  """

  @abc.abstractmethod
  def __call__(
    self, steps: steps_lib.StepBatch
  ) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
    """Returns rewards `[N]`, and scalar metrics by name.

    Steps whose mask is false must have no effect.
    """


class RewardingUpdate(interfaces.Update):
  """Relabels the rewards of each batch before an agent's update.

  Checkpoints contain the variables of both. Only those of the agent can
  initialize another run, so that it may have another reward model or none.
  """

  def __init__(
    self,
    wrapped: interfaces.Update,
    rewards: Rewards,
    observes_previous_action_and_reward: bool = False,
  ):
    """Initializes the update.

    Args:
      wrapped: The agent's update.
      rewards: Reward model, called before the agent's update.
      observes_previous_action_and_reward: Whether the agent observes them; the
        reward model does not.
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

  def __call__(self, sample: types.Sample) -> interfaces.UpdateResult:
    steps = steps_lib.take(sample)
    if self._observes_previous:
      steps = steps._replace(
        observation=steps.observation[OBSERVATION],
        next_observation=steps.next_observation[OBSERVATION],
      )
    rewards, metrics = self._rewards(steps)
    result = interfaces.call_update(
      self._wrapped, steps_lib.with_rewards(sample, rewards)
    )
    return result._replace(metrics={**result.metrics, **metrics})
