"""Tests of `agents/impala/learning.py`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import impala
from repertory.components import learners
from support.agents import acting_policies, sequence_updates

B, T = sequence_updates.B, sequence_updates.T
MASK, SPEC = sequence_updates.MASK, sequence_updates.SPEC
CONFIG = impala.IMPALAConfig(
  hidden_sizes=(4,),
  core='lstm',
  core_size=4,
  unroll_length=T,
  batch_size=B,
  discount=0.8,
  baseline_cost=0.7,
  entropy_cost=0.3,
  max_gradient_norm=0.5,
  max_abs_reward=1.5,
  max_rho=1.2,
  max_pg_rho=0.9,
  max_c=0.8,
  lambda_=0.9,
  jit_compile=False,
)


def make_sample(network):
  random = np.random.default_rng(3)
  batch = sequence_updates.make_unrolls(random)
  action = random.integers(3, size=[B, T])
  log_prob = -random.uniform(0.5, 2, [B, T])
  extras = {
    'sample': tf.constant(action, tf.int32),
    'log_prob': tf.constant(log_prob, tf.float32),
  }
  state = sequence_updates.random_state(network, random)
  return sequence_updates.to_sample(
    batch, action.astype(np.int32), state, extras=extras
  )


def make(config=CONFIG):
  builder = impala.IMPALABuilder(config)
  network = builder.make_network(SPEC)
  acting_policies.fill(network.trainable_variables)
  return network, builder.make_update(network, SPEC)


def twin_loss(network, sample, config):
  """Losses from the network's outputs, row by row: V-trace, equation 1."""
  data = learners.time_major(sample.data)
  output, _ = network.unroll(data.observation, data.first, data.state)
  logits, v = output.parameters.numpy(), output.value.numpy()
  sums = np.zeros(3)
  for b in range(B):
    corrections = np.zeros(T + 1)  # v_s − V(x_s)
    for t in reversed(range(T)):
      if not MASK[b, t]:
        continue
      z = logits[t, b] - logits[t, b].max()
      log_p = z - np.log(np.exp(z).sum())
      log_pi = log_p[data.action[t, b]]
      ratio = np.exp(log_pi - float(data.extras['log_prob'][t, b]))
      limit = config.max_abs_reward
      r = float(data.reward[t, b])
      if limit is not None:
        r = min(max(r, -limit), limit)
      gamma = config.discount * float(data.discount[t, b])
      advantage = r + gamma * (v[t + 1, b] + corrections[t + 1]) - v[t, b]
      error = r + gamma * v[t + 1, b] - v[t, b]
      c = config.lambda_ * min(ratio, config.max_c)
      corrections[t] = (
        min(ratio, config.max_rho) * error + gamma * c * corrections[t + 1]
      )
      sums += [
        -log_pi * min(ratio, config.max_pg_rho) * advantage,
        0.5 * corrections[t] ** 2,
        np.sum(np.exp(log_p) * log_p),
      ]
  policy, value, entropy = sums / MASK.sum()
  return (
    policy + config.baseline_cost * value + config.entropy_cost * entropy
  ), (policy, value, entropy)


def arrays(network):
  return [variable.numpy() for variable in network.trainable_variables]


@pytest.mark.parametrize(
  'changes',
  [
    {},
    {'max_abs_reward': None},
    {'max_rho': 5.0, 'max_pg_rho': 5.0, 'max_c': 0.1},
  ],
)
def test_loss_equals_the_twin(changes):
  config = dataclasses.replace(CONFIG, **changes)
  network, update = make(config)
  sample = make_sample(network)
  expected, (policy, value, entropy) = twin_loss(network, sample, config)
  if changes:
    # The premise: the setting matters in this batch.
    usual, _ = twin_loss(network, sample, CONFIG)
    assert abs(usual - expected) > 1e-3
  metrics = update(sample).metrics
  np.testing.assert_allclose(metrics['loss'], expected, rtol=1e-4)
  np.testing.assert_allclose(metrics['policy_loss'], policy, rtol=1e-4)
  np.testing.assert_allclose(metrics['value_loss'], value, rtol=1e-4)
  np.testing.assert_allclose(metrics['entropy'], -entropy, rtol=1e-4)


def test_anneals_the_learning_rate():
  config = dataclasses.replace(CONFIG, anneal_learner_steps=4)
  network, update = make(config)
  sample, before, rates = make_sample(network), [], []
  for _ in range(6):
    before = [v.numpy() for v in network.trainable_variables]
    update(sample)
    rates.append(update._learning_rate.numpy())
  np.testing.assert_allclose(
    np.divide(rates, config.learning_rate), [1, 0.75, 0.5, 0.25, 0, 0]
  )
  for old, new in zip(before, network.trainable_variables, strict=True):
    np.testing.assert_array_equal(old, new)


def test_a_large_gradient_is_remembered():
  # A batch without steps has a gradient of 0, so the weights move only by the
  # averages of the batch before: without AMSGrad 1 / √0.999 further, because v
  # decays.
  moves = {}
  for amsgrad in (False, True):
    config = dataclasses.replace(
      CONFIG, amsgrad=amsgrad, adam_epsilon=1e-12, learning_rate=0.1
    )
    network, update = make(config)
    sample = make_sample(network)
    update(sample)
    before = np.concatenate([x.ravel() for x in arrays(network)])
    nothing = sample.data._replace(mask=tf.zeros_like(sample.data.mask))
    update(sample._replace(data=nothing))
    after = np.concatenate([x.ravel() for x in arrays(network)])
    moves[amsgrad] = after - before
  far = np.abs(moves[True]) > 0.05
  assert far.sum() > 50
  np.testing.assert_allclose(
    moves[False][far] / moves[True][far], 1 / np.sqrt(0.999), rtol=1e-4
  )
