"""Rewards within limits."""

import tensorflow as tf


def clip_rewards(rewards: tf.Tensor, max_abs: float | None) -> tf.Tensor:
  """Limits rewards to ± a number, see https://doi.org/10.1038/nature14236.

  Args:
    rewards: What is limited, of any shape.
    max_abs: The limit; None leaves them as they are.
  """
  if max_abs is None:
    return rewards
  return tf.clip_by_value(rewards, -max_abs, max_abs)
