"""Encoding of previous actions as network inputs."""

import math

import numpy as np
import tensorflow as tf
import tree

from repertory.components import specs, types
from repertory.components.actions import action_parts

_KEYS = {'observation', 'previous_action', 'previous_reward'}


def find(observation_spec: types.Nest) -> list[bool]:
  """Returns for each leaf whether `encode` applies to it.

  It applies to the parts of the previous action, except a `DiscreteArray`,
  which is one-hot encoded anywhere.

  Args:
    observation_spec: Nest of array specs. Only a spec with the keys of agents
      that observe previous action and reward has such leaves.
  """
  is_shown = isinstance(observation_spec, dict) and (
    observation_spec.keys() == _KEYS
  )
  return [
    is_shown
    and path[0] == 'previous_action'
    and not isinstance(spec, specs.DiscreteArray)
    for path, spec in tree.flatten_with_path(observation_spec)
  ]


def encode(leaf: tf.Tensor, spec: specs.Array) -> tf.Tensor:
  """Encodes a part of previous actions `[B, ...]` as features `[B, D]`.

  Bounded integers become one-hot. Bounded floats are scaled to [−1, 1], other
  floats are unchanged.
  """
  flat = tf.reshape(leaf, [tf.shape(leaf)[0], math.prod(spec.shape)])  # [B, K]
  if not action_parts.is_discrete(spec):
    middle, half_width = action_parts.scale_of(spec)
    half_width = np.where(half_width, half_width, 1)
    scaled = (tf.cast(flat, tf.float64) - middle.ravel()) / half_width.ravel()
    return tf.cast(scaled, tf.float32)
  minimum, counts = (
    one.ravel() for one in action_parts.choices_of(spec)
  )  # [K]
  # tf.one_hot does not support all dtypes, so cast to int64.
  steps = tf.cast(flat, tf.int64) - minimum.astype(np.int64)
  # Values out of bounds, as in padding, become zeros.
  steps = tf.where((steps >= 0) & (steps < counts), steps, -counts.sum())
  indices = steps + np.cumsum(counts) - counts  # [B, K]
  return tf.reduce_sum(tf.one_hot(indices, counts.sum()), axis=1)
