"""Tests of update and policy of BC."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import bc
from repertory.agents.interface import builder as builder_lib
from repertory.components import specs
from support.agents import numeric_gradients, transition_updates

arrays = transition_updates.arrays
B = transition_updates.B
CONTINUOUS = transition_updates.CONTINUOUS_SPEC
CHOICES = transition_updates.DISCRETE_SPEC
# Of several integers: 2 · 3 = 6 actions, numbered 3 i + j.
COMBINED = CHOICES._replace(
  actions=specs.BoundedArray((2,), np.int32, [0, 5], [1, 7])
)
CONFIG = bc.BCConfig(
  hidden_sizes=(4,),
  batch_size=B,
  learning_rate=0.05,
  adam_epsilon=0.1,  # Does not amplify rounding errors.
  jit_compile=False,
)


def make_batch(spec, seed):
  batch = transition_updates.make_continuous_batch(seed)
  random = np.random.default_rng(seed)
  if spec is COMBINED:
    batch['action'] = random.integers([0, 5], [2, 8], (B, 2))
  return batch


def outputs(arrays, observation):
  x = numeric_gradients.linear(
    arrays, 'observation_torso/mlp/linear_0', observation
  )
  return numeric_gradients.linear(arrays, 'head', np.maximum(x, 0))


def loss_of(spec, batch):
  """Returns the loss as a function of arrays, row by row."""

  def loss(arrays):
    total = 0.0
    for b in range(B):
      out = outputs(arrays, batch['observation'][b])
      action = batch['action'][b]
      if spec is CONTINUOUS:
        scaled = (action - [1, 3]) / [2, 1]
        total += np.sum((np.tanh(out) - scaled) ** 2) / len(scaled)
      else:
        if spec is COMBINED:
          action = 3 * action[0] + action[1] - 5
        total += np.log(np.sum(np.exp(out))) - out[action]
    return total / B

  return loss


@pytest.mark.parametrize(
  ('spec', 'changes'),
  [
    pytest.param(CONTINUOUS, {}, id='floats'),
    pytest.param(CONTINUOUS, {'max_gradient_norm': 0.1}, id='clipped'),
    pytest.param(COMBINED, {}, id='combined'),
  ],
)
def test_equals_the_twin(spec, changes):
  builder = bc.BCBuilder(dataclasses.replace(CONFIG, **changes))
  tf.random.set_seed(0)
  network = builder.make_network(spec)
  update = tf.function(builder.make_update(network, spec), autograph=False)
  twin = arrays(network)
  adam = numeric_gradients.Adam(CONFIG.learning_rate, CONFIG.adam_epsilon)
  for i in range(2):
    batch = make_batch(spec, i)
    loss = loss_of(spec, batch)
    gradients = numeric_gradients.gradients(loss, twin)
    metrics = {
      'loss': loss(twin),
      'gradient_norm': numeric_gradients.norm(gradients),
    }
    result = update(transition_updates.to_sample(batch))
    transition_updates.assert_step(result, metrics, priorities=None)
    clipped = numeric_gradients.clipped(
      gradients, changes.get('max_gradient_norm')
    )
    twin = adam.apply(clipped, twin)
    transition_updates.assert_all_close(arrays(network), twin)


@pytest.mark.parametrize('spec', [CONTINUOUS, COMBINED])
def test_policy_is_greedy(spec):
  builder = bc.BCBuilder(CONFIG)
  network = builder.make_network(spec)
  acting = builder_lib.Acting(spec, B, seed=3)
  policy = builder.make_policy(network, acting)
  observation = make_batch(spec, 0)['observation']
  found = policy.step(
    tf.constant(observation, tf.float32), policy.initial_state(range(B))
  ).action
  out = outputs(arrays(network), observation)
  best = np.argmax(out, axis=-1)
  if spec is CONTINUOUS:
    expected = np.tanh(out) * [2, 1] + [1, 3]
  else:
    expected = np.stack([best // 3, best % 3 + 5], axis=-1)
  np.testing.assert_allclose(found, expected, rtol=1e-5)
  for action in found.numpy():
    spec.actions.validate(action)
