"""Tests of `agents/dqn/learning.py`."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
from acme import specs

from repertory.agents import dqn
from repertory.agents.dqn import learning
from repertory.components import types
from support.agents import numpy_dqn, transition_updates
from support.system import rare_cases

arrays = transition_updates.arrays
to_sample = transition_updates.to_sample
B = transition_updates.B
SPEC = transition_updates.DISCRETE_SPEC
# Everything small; both sides of the Huber threshold are met, the gradients are
# clipped in some steps and not in others, and Adam's denominator lets the size
# of a gradient through.
CONFIG = dqn.DQNConfig(
  hidden_sizes=(4,),
  learning_rate=0.1,
  adam_epsilon=0.1,
  huber_threshold=0.7,
  max_gradient_norm=0.5,
  target_update_period=2,
  discount=0.9,
  importance_exponent=0.6,
  jit_compile=False,
)


def make_batch(seed, n_step=3):
  """A batch as `TransitionAdder` writes them: γ^(k-1) in the discounts."""
  random = np.random.default_rng(seed)
  lengths = random.integers(1, n_step + 1, size=B)
  discount = 0.9 ** (lengths - 1.0)
  discount[:2] = 0  # Episodes that terminated.
  return {
    'observation': random.normal(size=[B, 3]),
    'action': random.integers(3, size=B),
    'reward': 2 * random.normal(size=B),
    'discount': discount,
    'next_observation': random.normal(size=[B, 3]),
    'probability': random.uniform(0.001, 0.1, size=B),
    'table_size': random.integers(50, 60, size=B),
  }


def make(config):
  """Online and target network of random variables, and their update."""
  builder = dqn.DQNBuilder(config)
  online, target = builder.make_network(SPEC), builder.make_network(SPEC)
  update = learning.DQNUpdate(online, target, config)
  random = np.random.default_rng(0)
  # After the constructor's copy, so that the two differ from the start.
  for network in (online, target):
    for variable in sorted(network.variables, key=lambda v: v.name):
      variable.assign(random.normal(size=variable.shape))
  return online, target, update


class TestDQNUpdate:
  @pytest.mark.parametrize('double', [True, False])
  @pytest.mark.parametrize('dueling', [True, False])
  @pytest.mark.parametrize('prioritized', [True, False])
  def test_equals_the_twin(self, double, dueling, prioritized):
    config = dataclasses.replace(
      CONFIG,
      double=double,
      dueling=dueling,
      prioritized=prioritized,
    )
    self.check_against_twin(config, num_steps=3, jit_compile=False)

  @pytest.mark.parametrize(
    'jit_compile', rare_cases.daily([False, True], [False])
  )
  @pytest.mark.parametrize('prioritized', [True, False])
  def test_equals_the_twin_while_beta_rises(self, jit_compile, prioritized):
    # 0.6, 0.7, 0.8, 0.9, and then 1.
    config = dataclasses.replace(
      CONFIG, importance_anneal_learner_steps=4, prioritized=prioritized
    )
    self.check_against_twin(config, num_steps=6, jit_compile=jit_compile)

  @pytest.mark.parametrize(
    'max_gradient_norm', rare_cases.daily([0.05, 100.0], [0.05])
  )
  def test_equals_the_twin_compiled_by_xla(self, max_gradient_norm):
    config = dataclasses.replace(CONFIG, max_gradient_norm=max_gradient_norm)
    self.check_against_twin(config, num_steps=5, jit_compile=True)

  def test_equals_the_twin_with_values_held_down(self):
    config = dataclasses.replace(CONFIG, conservative_weight=0.7)
    self.check_against_twin(config, num_steps=3, jit_compile=False)

  @pytest.mark.parametrize('alone', [False, True])
  def test_equals_the_twin_with_demonstrations_above(self, alone):
    config = dataclasses.replace(CONFIG, margin_weight=0.7, margin=0.5)
    self.check_against_twin(config, 3, jit_compile=False, alone=alone)

  def check_against_twin(self, config, num_steps, jit_compile, alone=True):
    network, target_network, update = make(config)
    twin = numpy_dqn.Learner(arrays(network), arrays(target_network), config)
    call = tf.function(update, jit_compile=jit_compile, autograph=False)
    for i in range(num_steps):
      batch = make_batch(i, config.n_step)
      sample = to_sample(batch)
      batch['is_demonstration'] = np.ones(B, bool)
      if not alone:  # Besides its own experience.
        batch['is_demonstration'] = np.arange(B) % 3 > 0
        sample = sample._replace(is_demonstration=batch['is_demonstration'])
      q_values = [
        numpy_dqn.values(twin.online, o, config.dueling)
        for o in batch['observation']
      ]
      loss, errors, norm = twin.step(batch)
      result = call(sample)
      metrics = {
        'loss': loss,
        'td_error': np.mean(np.abs(errors)),
        'q_value': np.mean(q_values),
        'gradient_norm': norm,  # Before it is clipped.
      }
      if config.conservative_weight is not None:
        gaps = [
          np.log(np.sum(np.exp(q))) - q[action]
          for q, action in zip(q_values, batch['action'])
        ]
        metrics['conservative_gap'] = np.mean(gaps)
      if config.margin_weight is not None:
        gaps = map(numpy_dqn.margin_gap, q_values, batch['action'], [0.5] * B)
        metrics['margin_gap'] = np.mean(batch['is_demonstration'] * [*gaps])
      priorities = np.abs(errors) if config.prioritized else None
      transition_updates.assert_step(result, metrics, priorities)
      for module, expected in (
        (network, twin.online),
        (target_network, twin.target),
      ):
        transition_updates.assert_all_close(arrays(module), expected)

  def test_inputs_can_tell_the_formulas_apart(self):
    # The premise of the tests above: the formulas give different numbers.
    batch = make_batch(0)
    network, target_network, _ = make(CONFIG)
    online = arrays(network)
    target = arrays(target_network)
    losses = {
      name: numpy_dqn.loss(
        online, target, batch, dataclasses.replace(CONFIG, **changes)
      )
      for name, changes in {
        'all': {},
        'single': {'double': False},
        'uniform': {'prioritized': False},
        'beta': {'importance_exponent': 1.0},
        'gamma': {'discount': 0.81},
        'threshold': {'huber_threshold': 1.0},
      }.items()
    }
    usual = losses.pop('all')
    for name, loss in losses.items():
      assert abs(loss - usual) > 0.05, name

  @pytest.mark.parametrize(
    ('double', 'expected'),
    [
      # Online: q(s) = 0, whose argmax is action 0. Target: q(s) = (s, −2s),
      # that is (3, −6) for s' = 3 and (−3, 6) for s' = −3.
      (False, [1 + 0.9 * 3, 1 + 0.9 * 6]),
      (True, [1 + 0.9 * 3, abs(1 + 0.9 * -3)]),
    ],
  )
  def test_who_selects(self, double, expected):
    spec = SPEC._replace(
      observations=specs.Array((1,), np.float32),
      actions=specs.DiscreteArray(2),
    )
    config = dataclasses.replace(
      CONFIG, hidden_sizes=(), dueling=False, double=double
    )
    builder = dqn.DQNBuilder(config)
    online, target = builder.make_network(spec), builder.make_network(spec)
    update = learning.DQNUpdate(online, target, config)
    for network, weights in (
      (online, [[0.0, 0.0]]),
      (target, [[1.0, -2.0]]),
    ):
      biases, matrix = sorted(network.variables, key=lambda v: v.name)
      biases.assign([0.0, 0.0])
      matrix.assign(weights)
    result = update(
      types.Sample(
        data=types.Transition(
          observation=tf.zeros([2, 1]),
          action=tf.constant([0, 1]),
          reward=tf.ones([2]),
          discount=tf.ones([2]),
          next_observation=tf.constant([[3.0], [-3.0]]),
        ),
        keys=tf.range(2),
        probabilities=tf.constant([0.5, 0.5], tf.float64),
        table_sizes=tf.constant([2, 2], tf.int64),
      )
    )
    np.testing.assert_allclose(result.priorities.numpy(), expected, rtol=1e-6)

  def test_target_network_starts_as_a_copy(self):
    builder = dqn.DQNBuilder(CONFIG)
    online, target = builder.make_network(SPEC), builder.make_network(SPEC)
    learning.DQNUpdate(online, target, CONFIG)
    copies = arrays(target)
    for name, array in arrays(online).items():
      np.testing.assert_array_equal(copies[name], array)

  @pytest.mark.parametrize('max_gradient_norm', [0.01, 0.1])
  def test_clipping_bounds_the_step(self, max_gradient_norm):
    # With a huge denominator Adam's first step is lr / ε times the gradient.
    config = dataclasses.replace(
      CONFIG,
      max_gradient_norm=max_gradient_norm,
      adam_epsilon=1e4,
      learning_rate=1e4,
    )
    network, _, update = make(config)
    before = arrays(network)
    result = update(to_sample(make_batch(0)))
    assert float(result.metrics['gradient_norm']) > 0.2
    after = arrays(network)
    moved = np.sqrt(
      sum(np.sum((after[name] - before[name]) ** 2) for name in before)
    )
    np.testing.assert_allclose(moved, max_gradient_norm, rtol=1e-2)


def run(num_steps=4, **changes):
  """Returns all values after some steps."""
  config = dataclasses.replace(CONFIG, **changes)
  network, _, update = make(config)
  priorities = []
  for i in range(num_steps):
    result = update(to_sample(make_batch(i)))
    if result.priorities is not None:
      priorities += result.priorities.numpy().tolist()
  return np.concatenate(
    [np.ravel(a) for _, a in sorted(arrays(network).items())]
  ), priorities


@functools.cache
def usual_run():
  return run()


class TestSettings:
  @pytest.mark.parametrize(
    'changes',
    [
      {'double': False},
      {'discount': 0.5},
      {'learning_rate': 0.01},
      {'adam_epsilon': 1.0},
      {'max_gradient_norm': 0.01},
      {'huber_threshold': 0.1},
      {'target_update_period': 1},
      {'target_update_period': 3},
      {'prioritized': False},
      {'importance_exponent': 0.1},
      {'importance_anneal_learner_steps': 1},
    ],
  )
  def test_has_an_effect(self, changes):
    usual, _ = usual_run()
    changed, _ = run(**changes)
    assert np.abs(usual - changed).max() > 1e-3

  def test_runs_are_repeatable(self):
    # The premise of the test above.
    one, other = usual_run(), run()
    np.testing.assert_array_equal(one[0], other[0])
    assert one[1] == other[1]
