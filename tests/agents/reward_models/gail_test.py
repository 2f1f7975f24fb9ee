"""Tests of `agents/reward_models/gail.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents.reward_models import gail
from repertory.components import specs
from support.agents import numeric_gradients, wrapped_batches

_FLOAT = specs.Array((), np.float32)
_SPEC = specs.EnvironmentSpec(
  specs.Array((3,), np.float32), specs.DiscreteArray(2), _FLOAT, _FLOAT
)


class _Twin:
  """The equations in double precision, for one hidden layer."""

  def __init__(self, rewards, coefficient):
    self._rewards, self._coefficient = rewards, coefficient
    self._seen = np.zeros([0, 3])

  def __call__(self, steps):
    """Returns logits, the loss, the penalty, and the norm of the gradient."""
    mask, is_data = steps.mask, steps.is_demonstration
    self._seen = np.concatenate([self._seen, steps.observation[mask]])
    x = (steps.observation - self._seen.mean(0)) / self._seen.std(0)
    x = np.concatenate([np.clip(x, -10, 10), np.eye(2)[steps.action]], 1)
    own, data = np.flatnonzero(mask & ~is_data), np.flatnonzero(mask & is_data)
    shares = self._draw(len(x))
    between = np.stack(
      [
        (1 - share) * x[own[i % len(own)]] + share * x[data[i % len(data)]]
        for i, share in enumerate(shares)
      ]
    )
    weights = {
      v.name: v.numpy().astype(np.float64)
      for v in self._rewards._discriminator.variables
    }

    def loss_of(weights):
      d = 1 / (1 + np.exp(-_logits(weights, x)))
      return -np.log(d[data]).mean() - np.log(1 - d[own]).mean()

    def penalty_of(weights):
      norms = np.linalg.norm(_input_gradients(weights, between), axis=-1)
      return np.mean((norms - 1) ** 2)

    gradients = numeric_gradients.gradients(
      lambda weights: (
        loss_of(weights) + self._coefficient * penalty_of(weights)
      ),
      weights,
    )
    return (
      _logits(weights, x),
      loss_of(weights),
      penalty_of(weights),
      numeric_gradients.norm(gradients),
    )

  def _draw(self, size):
    noise = self._rewards._noise
    seed = tf.stack([noise._seed, noise._num_calls])  # Of the draw to come.
    return tf.random.stateless_uniform([size], seed).numpy()


def _logits(weights, x):
  hidden = np.maximum(numeric_gradients.linear(weights, _HIDDEN, x), 0)
  return numeric_gradients.linear(weights, _HEAD, hidden)[:, 0]


def _input_gradients(weights, x):
  is_on = numeric_gradients.linear(weights, _HIDDEN, x) > 0
  return (is_on * weights[f'{_HEAD}/w:0'][:, 0]) @ weights[f'{_HIDDEN}/w:0'].T


_HIDDEN, _HEAD = 'discriminator/mlp/linear_0', 'discriminator/head'


@pytest.mark.parametrize('kind', ['gail', 'airl'])
def test_rewards_and_losses_are_those_of_the_papers(kind):
  tf.random.set_seed(0)
  config = gail.GAILConfig(
    hidden_sizes=(4,), reward=kind, learning_rate=0.05,
    gradient_penalty_coefficient=3.0,
  )  # fmt: skip
  rewards = gail.GAILRewards(_SPEC, config)
  twin = _Twin(rewards, 3.0)
  for seed in range(3):
    steps = wrapped_batches.make_steps(seed)
    logits, loss, penalty, norm = twin(wrapped_batches.arrays(steps))
    found, metrics = rewards(steps)
    happened = steps.mask.numpy()
    d = 1 / (1 + np.exp(-logits))
    expected = -np.log(1 - d) + (np.log(d) if kind == 'airl' else 0)
    np.testing.assert_allclose(
      found[happened], expected[happened], rtol=1e-3, atol=1e-4
    )
    np.testing.assert_allclose(metrics['discriminator_loss'], loss, rtol=1e-3)
    np.testing.assert_allclose(metrics['gradient_penalty'], penalty, rtol=1e-3)
    np.testing.assert_allclose(
      metrics['discriminator_gradient_norm'], norm, rtol=2e-3
    )


def test_encodes_actions():
  two = specs.BoundedArray((2,), np.float32, [0, -1], [4, 1])
  size, encode = gail.make_encoder(two)
  np.testing.assert_allclose(encode(tf.constant([[1.0, 1.0]])), [[-0.5, 1]])
  assert size == 2
  several = specs.BoundedArray((2,), np.int32, 0, [1, 2])
  _, encode = gail.make_encoder(several)
  # The fifth of six combinations.
  np.testing.assert_array_equal(
    encode(tf.constant([[1, 1]])), [[0, 0, 0, 0, 1, 0]]
  )
  with pytest.raises(ValueError, match='must have finite bounds'):
    gail.make_encoder(specs.Array((2,), np.float32))
