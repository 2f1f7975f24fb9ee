"""Reward clipping."""

import tensorflow as tf


def clip_rewards(rewards: tf.Tensor, max_abs: float | None) -> tf.Tensor:
  """Clips rewards to ± `max_abs` (https://doi.org/10.1038/nature14236).

  Args:
    rewards: Rewards, of any shape.
    max_abs: The limit; None for no clipping.
  """
  if max_abs is None:
    return rewards
  return tf.clip_by_value(rewards, -max_abs, max_abs)
