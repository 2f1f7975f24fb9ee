"""The steps in a batch, whatever its items are."""

from typing import NamedTuple

import tensorflow as tf
import tree

from repertory.components import adders, types
from repertory.components.settings import SettingError


class Steps(NamedTuple):
  """All steps of a batch, one after another; N is known.

  Attributes:
    observation: o_t, `[N, ...]`.
    action: a_t, `[N, ...]`.
    next_observation: o_{t+1}, `[N, ...]`.
    reward: What the environment gave, `[N]`.
    mask: Whether the step happened, bool `[N]`.
    is_demonstration: Whether somebody else took it, bool `[N]`; `()` where
      batches have no demonstrations.
  """

  observation: types.Nest
  action: types.Nest
  next_observation: types.Nest
  reward: tf.Tensor
  mask: tf.Tensor
  is_demonstration: types.Array


def check(items: adders.Items, name: str) -> None:
  """Refuses items in which steps have no rewards of their own.

  Args:
    items: What an agent learns from.
    name: What is to give the rewards.

  Raises:
    SettingError: Naming what is to be changed.
  """
  if isinstance(items, adders.Transitions) and items.n_step > 1:
    raise SettingError(
      'n_step',
      f"must be 1 with '{name}', which gives a reward to each step: an item of "
      'several has the sum of theirs, and not what was observed between; got '
      f'{items.n_step}.',
    )
  if not isinstance(items, adders.Transitions | adders.Sequences):
    raise SettingError(
      'wrap',
      f"must be left out: '{name}' gives rewards to transitions and sequences, "
      f'and this agent learns from {type(items).__name__}.',
    )


def take(sample: types.Sample) -> Steps:
  """Takes the steps out of transitions `[B]`, or of sequences `[B, T]`."""
  data, is_demonstration = sample.data, sample.is_demonstration
  if isinstance(data, types.Transition):
    return Steps(
      data.observation,
      data.action,
      data.next_observation,
      data.reward,
      tf.ones_like(data.reward, tf.bool),
      is_demonstration,
    )
  has_marks = not isinstance(is_demonstration, tuple)
  return Steps(
    tree.map_structure(lambda x: _merge(x[:, :-1]), data.observation),
    tree.map_structure(_merge, data.action),
    tree.map_structure(lambda x: _merge(x[:, 1:]), data.observation),
    _merge(data.reward),
    _merge(data.mask),
    tf.repeat(is_demonstration, data.reward.shape[1]) if has_marks else (),
  )


def demonstrations_of(steps: Steps) -> tf.Tensor:
  """Returns which steps are demonstrations, bool `[N]`.

  Raises:
    ValueError: If batches have none.
  """
  if isinstance(steps.is_demonstration, tuple):
    raise ValueError(
      'Batches must have demonstrations to imitate, beside what the agent '
      'lives through itself; got none.'
    )
  return steps.is_demonstration


def with_rewards(sample: types.Sample, rewards: tf.Tensor) -> types.Sample:
  """Returns the same items with other rewards, `[N]`; 0 in the padding."""
  data = sample.data
  rewards = tf.reshape(rewards, data.reward.shape)
  if isinstance(data, types.Sequence):
    rewards = tf.where(data.mask, rewards, tf.zeros_like(rewards))
  return sample._replace(data=data._replace(reward=rewards))


def _merge(leaf: tf.Tensor) -> tf.Tensor:
  return tf.reshape(leaf, [leaf.shape[0] * leaf.shape[1], *leaf.shape[2:]])
