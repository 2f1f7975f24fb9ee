"""Tests of `agents/dqn/learning.py`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import dqn
from repertory.agents.dqn import learning
from support.agents import numpy_dqn, transition_updates

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
  @pytest.mark.parametrize(
    ('double', 'dueling', 'prioritized'),
    [(True, True, True), (False, True, False), (True, False, False)],
  )
  def test_equals_the_twin(self, double, dueling, prioritized):
    config = dataclasses.replace(
      CONFIG,
      double=double,
      dueling=dueling,
      prioritized=prioritized,
    )
    self.check_against_twin(config, num_steps=3, jit_compile=False)

  def test_equals_the_twin_while_beta_rises_compiled_by_xla(self):
    # 0.6, 0.7, 0.8, 0.9, and then 1.
    config = dataclasses.replace(
      CONFIG, importance_anneal_learner_steps=4, max_gradient_norm=0.05
    )
    self.check_against_twin(config, num_steps=6, jit_compile=True)

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
