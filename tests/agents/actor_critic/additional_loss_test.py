"""Tests of additional losses."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from repertory.agents import r2d2
from repertory.agents.actor_critic import policy_and_critic
from repertory.agents.interface import registry
from repertory.components import interfaces, learners, losses, specs
from repertory.components.runtime import compilation
from support.agents import agent_batches

# The first values of a variable that each network gets besides its own.
_WEIGHTS = {'network': 3.0, 'policy': 3.0, 'critic': -2.0}
_CASES = {
  'dqn': {'batch_size': 4, 'prioritized': True},
  'sac': {'batch_size': 4, 'policy_update_period': 1},
  'sac, discrete': {'batch_size': 4},
  'impala': {'batch_size': 4, 'unroll_length': 5},
  'ppo': {
    'batch_size': 4, 'unroll_length': 5, 'num_epochs': 1, 'num_minibatches': 1,
  },
  'ppo, lstm': {
    'batch_size': 4, 'unroll_length': 5, 'num_epochs': 1, 'num_minibatches': 1,
    'core': 'lstm', 'core_size': 3,
  },
}  # fmt: skip


def _mean_reward(data):
  if hasattr(data, 'mask'):
    return losses.masked_mean(data.reward, data.mask)
  return tf.reduce_mean(data.reward)


def _extended(network, name):
  network.extra = tf.Variable(_WEIGHTS[name], name=f'extra_{name}')
  return network


def _make(case, weight=1.0, additional_loss=None):
  """Makes an agent; its additional loss is variables times the mean reward."""
  name = case.split(',')[0]
  parent: Any = type(registry.make_builder(name, {}))

  class Builder(parent):
    def make_network(self, spec):
      network = super().make_network(spec)
      return _extended(network, 'policy' if name == 'sac' else 'network')

    if name == 'sac':

      def make_critics(self, spec):
        return _extended(super().make_critics(spec), 'critic')

      def make_discrete_critics(self, spec):
        return _extended(super().make_discrete_critics(spec), 'critic')

    if weight:

      def additional_loss(self, network, sample):
        if additional_loss is not None:
          return additional_loss(network, sample)
        mean, parts = _mean_reward(sample.data), [network]
        if isinstance(network, policy_and_critic.Networks):
          parts = list(network)
        loss = sum(weight * part.extra * mean for part in parts)
        return loss, {'mean_reward': mean}

  settings = {
    'hidden_sizes': (4,), 'jit_compile': False, 'max_gradient_norm': 1e6,
    **_CASES[case],
  }  # fmt: skip
  builder = Builder(registry.make_config(name, settings))
  spec = agent_batches.AGENTS[name].spec
  if case == 'sac, discrete':
    spec = spec._replace(actions=specs.DiscreteArray(3, np.int32))
  return builder, spec


def _make_batch(builder, spec):
  batch = agent_batches.make_batch(builder, spec, 1)
  if not hasattr(batch.data, 'mask'):
    return batch, np.mean(batch.data.reward)
  mask = np.ones(batch.data.mask.shape, bool)
  mask[0, 2:] = False
  mean = np.mean(np.asarray(batch.data.reward)[mask])
  return batch._replace(data=batch.data._replace(mask=tf.constant(mask))), mean


def _update(builder, spec, batch):
  tf.random.set_seed(1)
  update = builder.make_update(builder.make_network(spec), spec)
  return interfaces.call_update(update, batch).metrics


@pytest.mark.parametrize('case', _CASES)
def test_is_added_before_the_gradient(case):
  builder, spec = _make(case)
  batch, mean = _make_batch(builder, spec)
  metrics = _update(builder, spec, batch)
  without = _update(*_make(case, weight=0.0), batch)
  assert metrics.keys() - without.keys() == {'additional_loss', 'mean_reward'}
  assert not without.keys() - metrics.keys()
  np.testing.assert_allclose(metrics['mean_reward'], mean, rtol=1e-5)
  names = ['policy', 'critic'] if 'sac' in case else ['network']
  added = sum(_WEIGHTS[name] for name in names) * mean
  np.testing.assert_allclose(metrics['additional_loss'], added, rtol=1e-5)
  if 'loss' in metrics:
    np.testing.assert_allclose(
      metrics['loss'], without['loss'] + added, rtol=1e-4, atol=1e-5
    )
  # The mean reward is the gradient of each variable that is multiplied by it.
  for name in names:
    norm = 'gradient_norm' if name == 'network' else f'{name}_gradient_norm'
    expected = np.hypot(without[norm], mean)
    np.testing.assert_allclose(metrics[norm], expected, rtol=1e-4)


def _steps_of(data):
  """Returns the unpadded steps of `[T, B]`, flattened to sorted rows."""
  rows = []
  for t, b in np.argwhere(np.asarray(data.mask)):
    parts = [
      data.observation[t, b], data.observation[t + 1, b], data.first[t, b],
      data.first[t + 1, b], data.action[t, b], data.reward[t, b],
      data.discount[t, b], data.extras['log_prob'][t, b],
    ]  # fmt: skip
    rows.append([float(x) for part in parts for x in np.ravel(part)])
  return sorted(rows)


@pytest.mark.parametrize('case', ['ppo', 'ppo, lstm'])
def test_each_minibatch_has_its_own(case):
  seen, sizes = [], []

  def additional_loss(network, sample):
    assert tf.executing_eagerly()
    seen.append(_steps_of(sample.data))
    sizes.append(sample.data.mask.shape.as_list())
    assert sample.data.observation.shape[0] == sizes[-1][0] + 1
    outputs, _ = network.unroll(
      sample.data.observation, sample.data.first, sample.data.state
    )
    assert outputs.value.shape == sample.data.first.shape
    return tf.zeros([]), {}

  builder, spec = _make(case, 1.0, additional_loss)
  builder.config = dataclasses.replace(builder.config, num_minibatches=3)
  batch, _ = _make_batch(builder, spec)
  first = np.zeros([4, 6], bool)
  first[1, 3] = first[2, 0] = True
  batch = batch._replace(data=batch.data._replace(first=tf.constant(first)))
  metrics = _update(builder, spec, batch)
  assert metrics['additional_loss'] == 0
  # Whole unrolls with a memory, else single steps; what fills up is masked.
  # It is called once more before, for the names of its metrics.
  assert sizes == ([[5, 2]] if 'lstm' in case else [[1, 7]]) * 4
  seen = sorted(row for rows in seen[1:] for row in rows)
  assert len(seen) == 17
  assert seen == _steps_of(learners.time_major(batch.data))


def test_head_that_comes_late_is_named():
  head = snt.Linear(1, name='late_head')

  def additional_loss(network, sample):
    return tf.reduce_mean(head(tf.ones([1, 2]))), {}

  builder, spec = _make('dqn', 1.0, additional_loss)
  batch, _ = _make_batch(builder, spec)
  update = builder.make_update(builder.make_network(spec), spec)
  with pytest.raises(ValueError, match=r'late_head/w:0 \[2, 1\]'):
    compilation.CompiledFunction(
      lambda sample: tuple(learners.undone_unless_finite(update)(sample)),
      (agent_batches.spec_of(batch),),
      jit_compile=False,
    )


@pytest.mark.parametrize(('result', 'message'), [
  (None, r'must return a loss and metrics, .*, got None'),
  (tf.zeros([]), 'must return a loss and metrics'),
  ((None, {}), 'must return a loss and metrics'),
  ((tf.zeros([]), None), 'must return a loss and metrics'),
  ((tf.zeros([4]), {}), r'must return a scalar loss, got shape \[4\]'),
  ((0.0, {'loss': 0.0}), 'must not have names of .*, got loss'),
  ((0.0, {'x': tf.zeros([4])}), r"Metric 'x' of .* must be a scalar"),
])  # fmt: skip
def test_wrong_results_are_named(result, message):
  builder, spec = _make('dqn', 1.0, lambda network, sample: result)
  batch, _ = _make_batch(builder, spec)
  with pytest.raises(ValueError, match=message):
    _update(builder, spec, batch)


def test_metric_of_a_policy_is_not_overwritten():
  builder, spec = _make(
    'sac', 1.0, lambda network, sample: (0.0, {'policy_loss': 0.0})
  )
  batch, _ = _make_batch(builder, spec)
  with pytest.raises(
    ValueError, match=r'must not have names .*, got policy_loss'
  ):
    _update(builder, spec, batch)


def test_agent_that_would_ignore_it_is_refused():
  class Ignoring(r2d2.R2D2Builder):
    def additional_loss(self, network, sample):
      return 0.0, {}

  class Using(Ignoring):
    def make_update(self, network, spec):
      return super().make_update(network, spec)

  with pytest.raises(ValueError, match='Ignoring must not have additional'):
    Ignoring()
  assert Using().additional_loss
