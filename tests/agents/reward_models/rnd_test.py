"""Tests of `agents/reward_models/rnd.py`."""

import numpy as np
import tensorflow as tf

from repertory.agents.reward_models import rnd
from repertory.components import specs
from support.agents import numeric_gradients, wrapped_batches

_FLOAT = specs.Array((), np.float32)
_SPEC = specs.EnvironmentSpec(
  specs.Array((3,), np.float32), specs.DiscreteArray(2), _FLOAT, _FLOAT
)
_CONFIG = rnd.RNDConfig(
  hidden_sizes=(4,), embedding_size=3, intrinsic_coefficient=0.5,
  extrinsic_coefficient=3.0, max_abs_observation=1.2, learning_rate=0.1,
)  # fmt: skip


class _Twin:
  """Equations of the paper, sections 2.2 and 2.4, in double precision."""

  def __init__(self, rewards):
    self._rewards = rewards
    self._seen, self._errors = np.zeros([0, 3]), np.zeros([0])

  def __call__(self, steps):
    """Returns rewards, and the loss and the norm of its gradient."""
    mask = steps.mask
    self._seen = np.concatenate([self._seen, steps.next_observation[mask]])
    x = (steps.next_observation - self._seen.mean(0)) / self._seen.std(0)
    x = np.clip(x, -1.2, 1.2)
    target = _embed(_weights(self._rewards._target), x)
    weights = _weights(self._rewards._predictor)

    def errors_of(weights):
      return np.mean((_embed(weights, x) - target) ** 2, axis=-1)

    errors = errors_of(weights)
    self._errors = np.concatenate([self._errors, errors[mask]])
    gradients = numeric_gradients.gradients(
      lambda weights: errors_of(weights)[mask].mean(), weights
    )
    rewards = 3 * steps.reward + 0.5 * errors / self._errors.std()
    return rewards, errors[mask].mean(), numeric_gradients.norm(gradients)


_HIDDEN, _HEAD = 'observation_torso/mlp/linear_0', 'embedding'


def _weights(network):
  return {v.name: v.numpy().astype(np.float64) for v in network.variables}


def _embed(weights, x):
  x = np.maximum(numeric_gradients.linear(weights, _HIDDEN, x), 0)
  return numeric_gradients.linear(weights, _HEAD, x)


def test_rewards_and_losses_are_those_of_the_paper():
  tf.random.set_seed(0)
  rewards = rnd.RNDRewards(_SPEC, _CONFIG)
  twin = _Twin(rewards)
  fixed = [v.numpy() for v in rewards._target.variables]
  for seed in range(3):
    steps = wrapped_batches.make_steps(seed)
    expected, loss, norm = twin(wrapped_batches.arrays(steps))
    found, metrics = rewards(steps)
    happened = steps.mask.numpy()
    np.testing.assert_allclose(
      found[happened], expected[happened], rtol=1e-3, atol=1e-5
    )
    np.testing.assert_allclose(metrics['prediction_loss'], loss, rtol=1e-3)
    np.testing.assert_allclose(
      metrics['prediction_gradient_norm'], norm, rtol=1e-3
    )
  for before, variable in zip(fixed, rewards._target.variables):
    np.testing.assert_array_equal(before, variable.numpy())


def test_what_is_seen_often_is_new_no_more():
  tf.random.set_seed(0)
  config = rnd.RNDConfig(hidden_sizes=(32,), learning_rate=0.01)
  rewards = rnd.RNDRewards(_SPEC, config)
  often, seldom = (wrapped_batches.make_steps(seed) for seed in (0, 1))
  for steps in (often, seldom, *[often] * 60):
    rewards(steps)
  _, metrics = rewards(often)
  _, other = rewards(seldom)
  assert other['prediction_loss'] > 50 * metrics['prediction_loss']


def test_images_are_normalized_too():
  image = specs.BoundedArray((10, 10, 2), np.uint8, 0, 255)
  spec = _SPEC._replace(observations=image)
  rewards = rnd.RNDRewards(spec, rnd.RNDConfig(image_torso='minatar'))
  random = np.random.default_rng(0)
  images = tf.constant(random.integers(90, 99, [6, 10, 10, 2]), tf.uint8)
  steps = wrapped_batches.make_steps(0)._replace(next_observation=images)
  rewards(steps)
  normalized = rewards._normalizer(images).numpy()[:5]
  np.testing.assert_allclose(normalized.mean(0), 0, atol=1e-4)
  assert normalized.std() > 0.9
