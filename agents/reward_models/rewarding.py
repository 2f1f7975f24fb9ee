"""Update that relabels rewards of batches by a reward model."""

import abc
from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf
import tree

from repertory.components import interfaces, types
from repertory.components.runtime import loops

# Key of the observation for agents that also observe action and reward.
OBSERVATION = 'observation'


class StepBatch(NamedTuple):
  """All steps of a batch of transitions or sequences, flattened; N is static.

  Attributes:
    observation: o_t, `[N, ...]`.
    action: a_t, `[N, ...]`.
    next_observation: o_{t+1}, `[N, ...]`.
    reward: Rewards of the environment, `[N]`.
    mask: False for padding, bool `[N]`.
    is_demonstration: Whether the step is a demonstration, bool `[N]`; `()` for
      batches without demonstrations.
  """

  observation: types.Nest
  action: types.Nest
  next_observation: types.Nest
  reward: tf.Tensor
  mask: tf.Tensor
  is_demonstration: types.Array


class Rewards(tf.Module, abc.ABC):
  """Interface of reward models, which relabel batches and learn from them.

  Their whole state is in variables.
  """

  @abc.abstractmethod
  def __call__(
    self, steps: StepBatch
  ) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
    """Returns rewards `[N]`, and scalar metrics by name.

    Steps whose mask is false must have no effect.
    """


class RewardingUpdate(interfaces.UpdateWrapper):
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
    """Takes the agent's update, and the reward model, called before it.

    The agent may observe previous action and reward; the reward model does not.
    """
    super().__init__(wrapped)
    self._rewards = rewards
    self._observes_previous = observes_previous_action_and_reward

  def __call__(self, sample: types.Sample) -> interfaces.UpdateResult:
    steps = _steps_of(sample)
    if self._observes_previous:
      steps = steps._replace(
        observation=steps.observation[OBSERVATION],
        next_observation=steps.next_observation[OBSERVATION],
      )
    rewards, metrics = self._rewards(steps)
    data = sample.data
    rewards = tf.reshape(rewards, data.reward.shape)
    if isinstance(data, types.Sequence):  # Padding has the reward 0.
      rewards = tf.where(data.mask, rewards, tf.zeros_like(rewards))
    result = interfaces.call_update(
      self._update, sample._replace(data=data._replace(reward=rewards))
    )
    return result._replace(metrics={**result.metrics, **metrics})


def _steps_of(sample: types.Sample) -> StepBatch:
  """Extracts the steps of transitions `[B]` or sequences `[B, T]`."""
  data, is_demonstration = sample.data, sample.is_demonstration
  if isinstance(data, types.Transition):
    mask = tf.ones_like(data.reward, tf.bool)
    parts = data.observation, data.action, data.next_observation, data.reward
    return StepBatch(*parts, mask, is_demonstration)
  if not isinstance(is_demonstration, tuple):
    is_demonstration = tf.repeat(is_demonstration, data.reward.shape[1])
  return StepBatch(
    tree.map_structure(lambda x: loops.merge_axes(x[:, :-1]), data.observation),
    tree.map_structure(loops.merge_axes, data.action),
    tree.map_structure(lambda x: loops.merge_axes(x[:, 1:]), data.observation),
    loops.merge_axes(data.reward),
    loops.merge_axes(data.mask),
    is_demonstration,
  )
