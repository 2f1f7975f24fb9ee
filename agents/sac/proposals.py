"""Action samples of conservative Q-learning (CQL)."""

import math
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from repertory.components import learners


class Proposals(NamedTuple):
  """Sampled actions of the CQL regularizer, P for each item.

  Attributes:
    action: In [−1, 1], `[B, P, D]`.
    log_prob: Log-densities of their sampling distributions, `[B, P]`.
  """

  action: tf.Tensor
  log_prob: tf.Tensor


def propose(
  parameters: tuple[tf.Tensor, tf.Tensor],
  sample: Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]],
  noise: learners.UpdateNoise,
  number: int,
  size: int,
) -> Proposals:
  """Samples actions uniformly and from the policy in current and next states.

  See https://arxiv.org/abs/2006.04779, appendix F.

  Args:
    parameters: Policy parameters in current and next states, `[B, ...]`.
    sample: Maps parameters and Gaussian noise `[B, D]` to actions `[B, D]` and
      their log π, `[B]`.
    noise: Source of noise.
    number: Actions from each of the three distributions, a third of P.
    size: D, dimensions of an action.
  """
  batch_size = tf.shape(parameters[0])[0]
  uniforms = noise.uniforms([batch_size, number, size])
  actions = [2 * uniforms - 1]
  log_probs = [tf.fill([batch_size, number], -size * math.log(2))]
  for each in parameters:
    action, log_prob = sample(
      tf.repeat(each, number, axis=0),
      noise.normals([batch_size * number, size]),
    )
    actions.append(tf.reshape(action, [-1, number, size]))
    log_probs.append(tf.reshape(log_prob, [-1, number]))
  return Proposals(tf.concat(actions, axis=1), tf.concat(log_probs, axis=1))
