"""Tests of `agents/pqn/learning.py`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import pqn
from support.agents import numeric_gradients, sequence_updates

B, T = sequence_updates.B, sequence_updates.T
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
  random = np.random.default_rng(0)
  for variable in network.trainable_variables:
    variable.assign(random.normal(size=variable.shape))
  tf.random.set_seed(0)
  return network, builder.make_update(network, SPEC)


def make_sample(network, spoil=0.0, seed=3):
  """A batch; padded steps are filled with `spoil`."""
  random = np.random.default_rng(seed)
  batch = sequence_updates.make_unrolls(random, spoil)
  action = random.integers(0, 3, [B, T]).astype(np.int32)
  state = sequence_updates.random_state(network, random)
  return sequence_updates.to_sample(batch, action, state)


def arrays(network):
  return {v.name: v.numpy().astype(np.float64) for v in network.variables}


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
  assert set(metrics) == set(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(
      metrics[name], value, rtol=1e-3, atol=1e-5, err_msg=name
    )
  for name, array in arrays(network).items():
    np.testing.assert_allclose(array, after[name], atol=2e-4, err_msg=name)


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


def test_padding_has_no_effect(core='gru'):
  found = []
  for spoil in (0.0, 1e3):
    network, update = make(
      dataclasses.replace(CONFIG, core=core, num_minibatches=3, num_epochs=2)
    )
    metrics = update(make_sample(network, spoil)).metrics
    found.append([float(metrics[name]) for name in sorted(metrics)])
  np.testing.assert_allclose(*found, rtol=1e-6)
