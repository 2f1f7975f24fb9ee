"""Tests of `agents/pqn/learning.py`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import pqn
from support.agents import (
  acting_policies,
  numeric_gradients,
  sequence_updates,
  transition_updates,
)

B, T = sequence_updates.B, sequence_updates.T
arrays = transition_updates.arrays
FIRST, MASK = sequence_updates.FIRST, sequence_updates.MASK
SPEC = sequence_updates.SPEC
# One gradient step on everything, so that it can be predicted.
CONFIG = pqn.PQNConfig(
  hidden_sizes=(4,),
  unroll_length=T,
  batch_size=B,
  num_epochs=1,
  num_minibatches=1,
  discount=0.8,
  lambda_=0.7,
  learning_rate=0.05,
  adam_epsilon=0.1,  # Does not amplify rounding errors.
  max_abs_reward=1.5,
  max_gradient_norm=1e6,
  jit_compile=False,
)


def make(config=CONFIG):
  """Returns a network with any variables, and the update."""
  builder = pqn.PQNBuilder(config)
  network = builder.make_network(SPEC)
  acting_policies.fill(network.trainable_variables)
  tf.random.set_seed(0)
  return network, builder.make_update(network, SPEC)


def make_sample(network):
  random = np.random.default_rng(3)
  batch = sequence_updates.make_unrolls(random)
  action = random.integers(0, 3, [B, T]).astype(np.int32)
  state = sequence_updates.random_state(network, random)
  return sequence_updates.to_sample(batch, action, state)


def values_of(arrays, observation):
  """Linear, normalization, ReLU and head, of `[..., 3]`."""
  names = 'normalized_mlp/linear_0', 'normalized_mlp/norm_0'
  x = numeric_gradients.linear(arrays, names[0], observation)
  x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
  x = x * arrays[f'{names[1]}/scale:0'] + arrays[f'{names[1]}/offset:0']
  return numeric_gradients.linear(arrays, 'head', np.maximum(x, 0))


def returns_of(q, data, config):
  """Peng's λ-returns `[B, T]`, computed backward from the last value."""
  found = np.zeros([B, T])
  for b in range(B):
    following = None
    for t in reversed(range(T)):
      best = q[b, t + 1].max()
      if not MASK[b, t]:
        following = None
        continue
      limit = config.max_abs_reward
      reward = config.reward_scale * float(data.reward[b, t])
      if limit is not None:
        reward = min(max(reward, -limit), limit)
      gamma = config.discount * float(data.discount[b, t])
      known = best if following is None else following
      mixed = (1 - config.lambda_) * best + config.lambda_ * known
      found[b, t] = following = reward + gamma * mixed
  return found


def twin(network, sample, config):
  """Returns metrics and the arrays after a gradient step."""
  data, before = sample.data, arrays(network)
  observation = data.observation.numpy().astype(np.float64)
  q = values_of(before, observation)
  targets = returns_of(q, data, config)

  def errors(arrays):
    q = values_of(arrays, observation)[:, :-1]
    chosen = np.take_along_axis(q, data.action.numpy()[..., None], axis=-1)
    return (targets - chosen[..., 0])[MASK]

  def loss(arrays):
    return np.mean(errors(arrays) ** 2) / 2

  gradients = numeric_gradients.gradients(loss, before)
  adam = numeric_gradients.Adam(config.learning_rate, config.adam_epsilon)
  clipped = numeric_gradients.clipped(gradients, config.max_gradient_norm)
  metrics = {
    'loss': loss(before),
    'td_error': np.mean(np.abs(errors(before))),
    'gradient_norm': numeric_gradients.norm(gradients),
    'q_value': np.mean(q[:, :-1].mean(-1)[MASK]),
    'target': np.mean(targets[MASK]),
    'share_of_padding': 3 / 15,
    'gradient_steps': 1,
  }
  return metrics, adam.apply(clipped, before)


@pytest.mark.parametrize(
  'changes',
  [
    {},
    {'max_abs_reward': None, 'lambda_': 1.0},
    {'reward_scale': 0.1, 'max_gradient_norm': 0.1},
  ],
)
def test_equals_the_twin(changes):
  config = dataclasses.replace(CONFIG, **changes)
  network, update = make(config)
  sample = make_sample(network)
  expected, after = twin(network, sample, config)
  metrics = update(sample).metrics
  transition_updates.assert_all_close(metrics, expected, tolerance=1e-5)
  transition_updates.assert_all_close(arrays(network), after, tolerance=2e-4)


def test_recurrent_state_is_unrolled():
  config = dataclasses.replace(CONFIG, core='lstm', core_size=4)
  network, update = make(config)
  sample = make_sample(network)
  q, _ = network.unroll(
    tf.transpose(sample.data.observation, [1, 0, 2]),
    tf.constant(FIRST.T),
    sample.data.state,
  )
  q = q.numpy().swapaxes(0, 1)  # [B, T + 1, A]
  chosen = np.take_along_axis(
    q[:, :-1], sample.data.action.numpy()[..., None], axis=-1
  )[..., 0]
  errors = (returns_of(q, sample.data, config) - chosen)[MASK]
  np.testing.assert_allclose(
    update(sample).metrics['loss'], np.mean(errors**2) / 2, rtol=1e-4
  )
