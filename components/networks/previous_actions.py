"""The action before an observation, as an input of networks."""

import math

import numpy as np
import tensorflow as tf
import tree

from repertory.components import action_parts, specs, types

_KEYS = {'observation', 'previous_action', 'previous_reward'}


def find(observation_spec: types.Nest) -> list[bool]:
  """Tells of each leaf whether `encode` is to read it.

  These are the parts of the action before, but for a `DiscreteArray`, which is
  read alike wherever it stands.

  Args:
    observation_spec: Nest of array specs. Only one that has the keys which
      agents get that observe previous action and reward has such leaves.
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
  """Maps a part of actions, `[B, ...]`, to numbers of about one size, `[B, D]`.

  Each integer with bounds becomes one-hot. A float between bounds becomes −1 to
  1, another one stays what it is.
  """
  flat = tf.reshape(leaf, [tf.shape(leaf)[0], math.prod(spec.shape)])  # [B, K]
  if not action_parts.is_discrete(spec):
    middle, half_width = action_parts.scale_of(spec)
    half_width = np.where(half_width, half_width, 1)
    scaled = (tf.cast(flat, tf.float64) - middle.ravel()) / half_width.ravel()
    return tf.cast(scaled, tf.float32)
  choices = action_parts.choices_of(spec)
  counts = choices.counts.ravel()  # [K]
  # one_hot does not take all dtypes; int64 holds the values of all.
  steps = tf.cast(flat, tf.int64) - choices.minimum.ravel().astype(np.int64)
  # What is out of bounds, as in padding, is no other number's choice.
  steps = tf.where((steps >= 0) & (steps < counts), steps, -counts.sum())
  places = steps + np.cumsum(counts) - counts  # [B, K]
  return tf.reduce_sum(tf.one_hot(places, counts.sum()), axis=1)
