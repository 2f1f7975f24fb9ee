"""Tests of `agents/ppo/learning.py`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import ppo
from repertory.components import distributions
from support.agents import acting_policies, numpy_vmpo, sequence_updates

B, T = sequence_updates.B, sequence_updates.T
MASK, SPEC = sequence_updates.MASK, sequence_updates.SPEC
# One gradient step on everything, so that losses can be predicted.
CONFIG = ppo.PPOConfig(
  hidden_sizes=(4,),
  normalize_observations=True,
  unroll_length=T,
  batch_size=B,
  num_epochs=1,
  num_minibatches=1,
  discount=0.8,
  lambda_=0.7,
  clip_epsilon=0.1,
  baseline_cost=0.7,
  entropy_cost=0.3,
  max_abs_reward=1.5,
  jit_compile=False,
)
LSTM = dataclasses.replace(CONFIG, core='lstm', core_size=4)


def make(config=CONFIG, spec=SPEC):
  builder = ppo.PPOBuilder(config)
  network = builder.make_network(spec)
  acting_policies.fill(network.trainable_variables)
  if config.normalize_observations:
    random = np.random.default_rng(1)
    count, mean, variance = network.normalizer.variables
    count.assign(100)  # There were batches before.
    mean.assign(random.normal(size=mean.shape))
    variance.assign(random.uniform(0.5, 2, size=mean.shape))
  return network, builder.make_update(network, spec)


def make_sample(network, spec=SPEC, lag=0.5, seed=3):
  """A batch of the network; its log-probabilities are off by `lag`."""
  random = np.random.default_rng(seed)
  batch = sequence_updates.make_unrolls(random)
  distribution = distributions.make_distribution(spec.actions)
  state = sequence_updates.random_state(network, random)
  output, _ = network.unroll(
    tf.constant(batch['observation'].swapaxes(0, 1), tf.float32),
    tf.constant(sequence_updates.FIRST.T),
    state,
  )
  parameters = tf.reshape(output.parameters[:-1], [T * B, -1])
  sample, _ = distribution.sample(
    parameters, tf.cast(tf.range(T * B), tf.uint64)
  )
  log_prob = distribution.log_prob(parameters, sample).numpy()
  log_prob = log_prob.reshape([T, B]).T - random.normal(size=[B, T]) * lag
  sample = sample.numpy().reshape([T, B, *sample.shape[1:]]).swapaxes(0, 1)
  extras = {
    'sample': tf.constant(sample),
    'log_prob': tf.constant(log_prob, tf.float32),
  }
  return sequence_updates.to_sample(batch, sample, state, extras=extras)


def twin(network, sample, config):
  """Means of `twin_steps`, and the resulting loss."""
  rows, numbers, targets = twin_steps(network, sample, config)
  means = {
    name: np.mean([row[name] for row in rows.values()])
    for name in next(iter(rows.values()))
  }
  means['loss'] = (
    means['policy_loss']
    + config.baseline_cost * means['value_loss']
    - config.entropy_cost * means['entropy']
  )
  means['explained_variance'] = 1 - np.var(numbers) / np.var(targets)
  return means


def twin_steps(network, sample, config):
  """Losses and measures from the network's outputs, step by step."""
  data = sample.data
  output, _ = network.unroll(
    tf.transpose(data.observation, [1, 0, 2]),
    tf.transpose(data.first),
    data.state,
  )
  logits, values = output.parameters.numpy(), output.value.numpy()
  advantages, targets = (
    x.T[MASK]
    for x in numpy_vmpo.estimate(
      config,
      sequence_updates.to_arrays(sample),
      values,
      config.lambda_,
      config.max_abs_reward,
    )
  )
  rows = {}
  for (b, t), advantage in zip(np.argwhere(MASK), advantages):
    error = advantage  # The target less the value.
    if config.normalize_advantages:
      advantage = (advantage - advantages.mean()) / advantages.std()
    z = logits[t, b] - logits[t, b].max()
    log_p = z - np.log(np.exp(z).sum())
    log_pi = log_p[int(data.extras['sample'][b, t])]
    ratio = np.exp(log_pi - float(data.extras['log_prob'][b, t]))
    low, high = 1 - config.clip_epsilon, 1 + config.clip_epsilon
    rows[b, t] = {
      'policy_loss': -min(
        ratio * advantage, min(max(ratio, low), high) * advantage
      ),
      'value_loss': 0.5 * error**2,
      'entropy': -np.sum(np.exp(log_p) * log_p),
      'approximate_kl': ratio - 1 - np.log(ratio),
      'clip_fraction': not low <= ratio <= high,
      'importance_ratio': ratio,
      'value': values[t, b],
    }
  return rows, advantages, targets


def arrays(module):
  return [variable.numpy() for variable in module.variables]


class TestLoss:
  @pytest.mark.parametrize(
    'changes',
    [
      {},
      {'max_abs_reward': None},
      {'clip_epsilon': 0.6},
      {'normalize_advantages': False},
    ],
  )
  def test_loss_equals_the_twin(self, changes):
    for base in (CONFIG, LSTM):
      config = dataclasses.replace(base, **changes)
      network, update = make(config)
      sample = make_sample(network)
      expected = twin(network, sample, config)
      if changes:
        # The premise: the setting matters in this batch.
        usual = twin(network, sample, base)
        assert abs(usual['loss'] - expected['loss']) > 1e-3
      metrics = update(sample).metrics
      for name, value in expected.items():
        np.testing.assert_allclose(
          metrics[name], value, rtol=1e-3, atol=1e-5, err_msg=name
        )
      assert metrics['gradient_steps'] == 1
      np.testing.assert_allclose(metrics['share_of_padding'], 3 / 15)

  def test_values_move_no_further_than_they_may(self):
    # After a first step that moves them far, clipped values are not free.
    config = dataclasses.replace(
      CONFIG, num_epochs=2, learning_rate=0.5, max_gradient_norm=1e6
    )
    found = []
    for value_clip_epsilon in (None, 0.01, 1e6):
      network, update = make(
        dataclasses.replace(config, value_clip_epsilon=value_clip_epsilon)
      )
      found.append(update(make_sample(network)).metrics['value_loss'].numpy())
    assert abs(found[1] - found[0]) > 1e-3
    np.testing.assert_allclose(found[0], found[2], rtol=1e-5)


class TestUpdate:
  def test_later_on_the_first_ratio_is_1_as_statistics_change_last(self):
    for config in (CONFIG, LSTM):
      network, update = make(config)
      for seed in range(2):  # The second time with other statistics.
        before = arrays(network.normalizer)
        metrics = update(make_sample(network, lag=0.0, seed=seed)).metrics
        np.testing.assert_allclose(metrics['importance_ratio'], 1, atol=1e-5)
        np.testing.assert_allclose(metrics['approximate_kl'], 0, atol=1e-5)
        assert metrics['clip_fraction'] == 0
        after = arrays(network.normalizer)
        assert after[0] == before[0] + MASK.sum()
        assert np.all(after[1] != before[1])

  def test_the_first_batch_is_normalized_by_itself(self, config=CONFIG):
    network, update = make(config)
    count, mean, variance = network.normalizer.variables
    # What acted has seen nothing: mean 0 and variance 1.
    count.assign(0)
    mean.assign(tf.zeros_like(mean))
    variance.assign(tf.ones_like(variance))
    sample = make_sample(network)
    as_it_came = twin(network, sample, config)
    seen = sample.data.observation.numpy()[:, :-1][MASK].astype(np.float64)
    mean.assign(seen.mean(axis=0))
    variance.assign(seen.var(axis=0))
    expected = twin(network, sample, config)
    for name in ('loss', 'importance_ratio', 'value'):
      # The premise: what is learned is another thing.
      assert abs(as_it_came[name] / expected[name] - 1) > 2e-3
    mean.assign(tf.zeros_like(mean))
    variance.assign(tf.ones_like(variance))
    metrics = update(sample).metrics
    for name, value in expected.items():
      np.testing.assert_allclose(
        metrics[name], value, rtol=1e-3, atol=1e-5, err_msg=name
      )
    assert count == MASK.sum()  # Once, not twice.
    np.testing.assert_allclose(mean, seen.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(variance, seen.var(axis=0), rtol=1e-5)

  def test_advantages_are_standardized_in_each_minibatch(self):
    # Each unroll is one, so that their order does not matter.
    config = dataclasses.replace(
      LSTM, num_minibatches=B, learning_rate=1e-12, normalize_observations=False
    )
    network, update = make(config)
    sample = make_sample(network)
    rows, numbers, _ = twin_steps(network, sample, config)
    terms = [[] for _ in range(B)]
    for unroll in range(B):
      steps = [
        (i, row) for i, (k, row) in enumerate(rows.items()) if k[0] == unroll
      ]
      own = np.array([numbers[i] for i, _ in steps])
      for advantage, (_, row) in zip((own - own.mean()) / own.std(), steps):
        ratio = row['importance_ratio']
        clipped = np.clip(
          ratio, 1 - config.clip_epsilon, 1 + config.clip_epsilon
        )
        terms[unroll].append(-min(ratio * advantage, clipped * advantage))
    expected = np.mean([np.mean(term) for term in terms])
    of_batch = np.mean([row['policy_loss'] for row in rows.values()])
    assert abs(of_batch - expected) > 1e-3
    policy_loss = update(sample).metrics['policy_loss']
    np.testing.assert_allclose(policy_loss, expected, rtol=1e-3)

  def test_a_memory_sees_its_past(self):
    # With the unrolls cut up, the outputs would be those of other states.
    config = dataclasses.replace(LSTM, num_minibatches=3, learning_rate=1e-12)
    network, update = make(config)
    metrics = update(make_sample(network, lag=0.0)).metrics
    np.testing.assert_allclose(metrics['approximate_kl'], 0, atol=1e-5)

  def test_stops_beyond_the_target_kl(self):
    config = dataclasses.replace(
      CONFIG, num_epochs=50, target_kl=0.05, learning_rate=0.02
    )
    network, update = make(config)
    compiled = tf.function(update, autograph=False)
    metrics = compiled(make_sample(network, lag=0.0)).metrics
    assert 2 <= metrics['gradient_steps'].numpy() <= 49
    # All minibatches but the last were within it.
    n = metrics['gradient_steps'].numpy()
    assert metrics['approximate_kl'] < 0.05 + 1 / n
    for value in metrics.values():
      assert np.isfinite(value)

  def test_anneals(self):
    config = dataclasses.replace(
      CONFIG, anneal_learner_steps=4, normalize_observations=False
    )
    network, update = make(config)
    sample = make_sample(network)
    before, rates, fractions = arrays(network), [], []
    for _ in range(6):
      fractions.append(update(sample).metrics['clip_fraction'].numpy())
      rates.append(update._learning_rate.numpy())
    np.testing.assert_allclose(
      np.divide(rates, config.learning_rate), [1, 0.75, 0.5, 0.25, 0, 0]
    )
    assert fractions[0] < 1
    assert fractions[-1] == 1  # ε is 0, too.
    assert np.any(arrays(network)[0] != before[0])
