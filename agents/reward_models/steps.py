"""Steps of batches of transitions or sequences."""

from typing import NamedTuple

import tensorflow as tf
import tree

from repertory.components import adders, types
from repertory.components.config.settings import SettingError


class StepBatch(NamedTuple):
  """All steps of a batch, flattened; N is static.

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


def check(items: adders.ItemSpec, name: str) -> None:
  """Checks that each step of an item has its own reward.

  Args:
    items: Kind of the agent's items.
    name: Name of the reward model.

  Raises:
    SettingError: If steps of an item do not have their own rewards.
  """
  if isinstance(items, adders.Transitions) and items.n_step > 1:
    raise SettingError(
      'n_step',
      f"must be 1 with '{name}', which relabels single steps: n-step "
      f'transitions lack the steps between. Got {items.n_step}.',
    )
  if not isinstance(items, adders.Transitions | adders.Sequences):
    raise SettingError(
      'wrap',
      f"must be left out: '{name}' relabels transitions and sequences, but "
      f'this agent learns from {type(items).__name__}.',
    )


def take(sample: types.Sample) -> StepBatch:
  """Extracts the steps of transitions `[B]` or sequences `[B, T]`."""
  data, is_demonstration = sample.data, sample.is_demonstration
  if isinstance(data, types.Transition):
    return StepBatch(
      data.observation,
      data.action,
      data.next_observation,
      data.reward,
      tf.ones_like(data.reward, tf.bool),
      is_demonstration,
    )
  has_marks = not isinstance(is_demonstration, tuple)
  return StepBatch(
    tree.map_structure(lambda x: _merge(x[:, :-1]), data.observation),
    tree.map_structure(_merge, data.action),
    tree.map_structure(lambda x: _merge(x[:, 1:]), data.observation),
    _merge(data.reward),
    _merge(data.mask),
    tf.repeat(is_demonstration, data.reward.shape[1]) if has_marks else (),
  )


def demonstrations_of(steps: StepBatch) -> tf.Tensor:
  """Returns which steps are demonstrations, bool `[N]`.

  Raises:
    ValueError: If batches have no demonstrations.
  """
  if isinstance(steps.is_demonstration, tuple):
    raise ValueError(
      'Batches must have demonstrations besides steps of the agent, got none.'
    )
  return steps.is_demonstration


def with_rewards(sample: types.Sample, rewards: tf.Tensor) -> types.Sample:
  """Replaces the rewards of items by `[N]`, with 0 for padding."""
  data = sample.data
  rewards = tf.reshape(rewards, data.reward.shape)
  if isinstance(data, types.Sequence):
    rewards = tf.where(data.mask, rewards, tf.zeros_like(rewards))
  return sample._replace(data=data._replace(reward=rewards))


def _merge(leaf: tf.Tensor) -> tf.Tensor:
  return tf.reshape(leaf, [leaf.shape[0] * leaf.shape[1], *leaf.shape[2:]])
