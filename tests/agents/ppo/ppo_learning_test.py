"""Tests of `agents/ppo/learning.py`."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.agents import ppo
from repertory.components import distributions, specs
from support.agents import sequence_updates
from support.system import rare_cases

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
  random = np.random.default_rng(0)
  for variable in network.trainable_variables:
    variable.assign(random.normal(size=variable.shape))
  if network.normalizer is not None:
    count, mean, variance = network.normalizer.variables
    count.assign(100)  # There were batches before.
    mean.assign(random.normal(size=mean.shape))
    variance.assign(random.uniform(0.5, 2, size=mean.shape))
  return network, builder.make_update(network, spec)


def run_updates(**changes):
  """Returns all trainable variables after two updates from the same seed."""
  config = dataclasses.replace(
    CONFIG, num_minibatches=2, learning_rate=0.05, **changes
  )
  tf.random.set_seed(0)
  network, update = make(config)
  sample = make_sample(network)
  for _ in range(2):
    update(sample)
  return np.concatenate([np.ravel(v) for v in network.trainable_variables])


@functools.cache
def usual_run():
  return run_updates()


def make_sample(network, spec=SPEC, spoil=0.0, lag=0.5, seed=3):
  """A batch of the network; its log-probabilities are off by `lag`.

  Padded steps are filled with `spoil`.
  """
  random = np.random.default_rng(seed)
  batch = sequence_updates.make_unrolls(random, spoil)
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
    'log_prob': tf.constant(np.where(MASK, log_prob, -spoil), tf.float32),
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
  advantages, rows = {}, {}
  for b in range(B):
    following = 0.0
    for t in reversed(range(T)):
      if not MASK[b, t]:
        following = 0.0
        continue
      r, limit = float(data.reward[b, t]), config.max_abs_reward
      r = r if limit is None else min(max(r, -limit), limit)
      gamma = config.discount * float(data.discount[b, t])
      delta = r + gamma * values[t + 1, b] - values[t, b]
      following = delta + gamma * config.lambda_ * following
      advantages[b, t] = following
  numbers = np.array(list(advantages.values()))
  for (b, t), advantage in advantages.items():
    error = advantage  # The target less the value.
    if config.normalize_advantages:
      advantage = (advantage - numbers.mean()) / numbers.std()
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
  targets = [values[t, b] + a for (b, t), a in advantages.items()]
  return rows, numbers, targets


def arrays(module):
  return [variable.numpy() for variable in module.variables]


class TestLoss:
  @pytest.mark.parametrize(
    'changes',
    [
      {},
      {'discount': 0.5},
      {'lambda_': 0.2},
      {'max_abs_reward': None},
      {'max_abs_reward': 0.1},
      {'clip_epsilon': 0.6},
      {'normalize_advantages': False},
      {'baseline_cost': 0.0},
      {'entropy_cost': 0.0},
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


class TestScaledRewards:
  CONFIG = dataclasses.replace(
    CONFIG, scale_rewards=True, max_abs_reward=0.4, learning_rate=1e-12
  )

  @pytest.mark.parametrize('jit_compile', [False, True])
  def test_are_those_of_the_twin(self, jit_compile):
    network, update = make(self.CONFIG)
    compiled = tf.function(update, jit_compile=jit_compile, autograph=False)
    network.normalizer = None
    returns, scale = [], 1.0
    plain = dataclasses.replace(self.CONFIG, scale_rewards=False)
    for seed in range(3):
      sample = make_sample(network, seed=seed)
      returns += self._returns(network, sample.data, scale)
      scale = np.std(returns)
      data = sample.data._replace(reward=sample.data.reward / scale)
      # The premise: scaled ones are clipped, but not all.
      is_clipped = np.abs(data.reward.numpy()[MASK]) > 0.4
      assert 0 < is_clipped.sum() < MASK.sum()
      expected = twin(network, sample._replace(data=data), plain)
      metrics = compiled(sample).metrics
      np.testing.assert_allclose(metrics['reward_scale'], scale, rtol=1e-5)
      for name, value in expected.items():
        np.testing.assert_allclose(
          metrics[name], value, rtol=1e-3, atol=1e-5, err_msg=name
        )

  def _returns(self, network, data, scale):
    """Discounted sums of rewards up to the end or the last value, as a list."""
    output, _ = network.unroll(
      tf.transpose(data.observation, [1, 0, 2]),
      tf.transpose(data.first),
      data.state,
    )
    values, found = scale * output.value.numpy(), []
    for b in range(B):
      following = values[T, b]
      for t in reversed(range(T)):
        if not MASK[b, t]:
          following = values[t, b]
          continue
        gamma = self.CONFIG.discount * float(data.discount[b, t])
        following = float(data.reward[b, t]) + gamma * following
        found.append(following)
    return found

  def test_their_unit_does_not_matter(self):
    # With γ = 0 a return is a reward.
    config = dataclasses.replace(self.CONFIG, discount=0.0)
    found = []
    for unit in (1.0, 1_000.0):
      tf.random.set_seed(0)
      _, update = make(config)
      network, _ = make(config)
      sample = make_sample(network)
      data = sample.data._replace(reward=sample.data.reward * unit)
      deviation = data.reward.numpy()[MASK].std()
      metrics = update(sample._replace(data=data)).metrics
      np.testing.assert_allclose(metrics['reward_scale'], deviation, rtol=1e-5)
      found.append(metrics['loss'])
    np.testing.assert_allclose(*found, rtol=1e-5)

  def test_are_not_scaled_by_default(self):
    network, update = make()
    assert 'reward_scale' not in update(make_sample(network)).metrics


class TestUpdate:
  def test_padding_has_no_influence_on_a_memory(self):
    config = dataclasses.replace(
      LSTM,
      num_epochs=2,
      num_minibatches=2,
      target_kl=100.0,
      scale_rewards=True,
    )
    network, update = make(config)
    samples = [make_sample(network, spoil=spoil) for spoil in (0.0, 500.0)]
    results = sequence_updates.compiled_outcomes(update, samples, False)
    tree.map_structure(
      lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5),
      *results,
    )

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

  @pytest.mark.parametrize(
    ('config', 'jit_compile'),
    [
      pytest.param(CONFIG, False, id='default'),
      pytest.param(CONFIG, True, id='xla', marks=pytest.mark.chaos),
      pytest.param(LSTM, False, id='lstm', marks=pytest.mark.chaos),
      pytest.param(LSTM, True, id='lstm_xla', marks=pytest.mark.chaos),
    ],
  )
  def test_the_first_batch_is_normalized_by_itself(self, config, jit_compile):
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
    compiled = tf.function(update, jit_compile=jit_compile, autograph=False)
    metrics = compiled(sample).metrics
    for name, value in expected.items():
      np.testing.assert_allclose(
        metrics[name], value, rtol=1e-3, atol=1e-5, err_msg=name
      )
    assert count == MASK.sum()  # Once, not twice.
    np.testing.assert_allclose(mean, seen.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(variance, seen.var(axis=0), rtol=1e-5)

  def test_statistics_exclude_padding(self):
    network, update = make()
    count, mean, variance = network.normalizer.variables
    count.assign(0)
    sample = make_sample(network, spoil=1e6)
    update(sample)
    seen = sample.data.observation.numpy()[:, :-1][MASK]
    np.testing.assert_allclose(count, MASK.sum())
    np.testing.assert_allclose(mean, seen.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(variance, seen.var(axis=0), rtol=1e-5)

  def test_takes_all_gradient_steps_on_all_of_the_batch(self):
    config = dataclasses.replace(CONFIG, num_epochs=3, num_minibatches=4)
    network, update = make(config)
    metrics = update(make_sample(network)).metrics
    assert metrics['gradient_steps'] == 12

  def test_minibatches_of_an_epoch_are_the_batch(self):
    # Without learning, the mean over equal minibatches is that of the batch.
    config = dataclasses.replace(
      CONFIG,
      num_minibatches=15,
      learning_rate=1e-12,
      normalize_advantages=False,
    )
    network, update = make(config)
    sample = make_sample(network)
    expected = twin(network, sample, config)
    metrics = update(sample).metrics
    for name in ('policy_loss', 'value_loss', 'entropy'):
      # Three of fifteen steps are padding.
      np.testing.assert_allclose(
        metrics[name], expected[name] * 12 / 15, rtol=1e-4, err_msg=name
      )

  def test_what_fills_up_a_minibatch_does_not_count(self):
    # Three unrolls in two parts: two of them, and the third alone.
    config = dataclasses.replace(LSTM, num_minibatches=2, learning_rate=1e-12)
    network, update = make(config)
    network.normalizer = None
    sample = make_sample(network)
    rows, _, _ = twin_steps(network, sample, config)
    losses = [
      [row['value_loss'] for (b, _), row in rows.items() if b == unroll]
      for unroll in range(B)
    ]
    expected = [
      (np.mean(losses[i]) + np.mean(losses[i - 1] + losses[i - 2])) / 2
      for i in range(B)
    ]
    found = set()
    for _ in range(8):
      value_loss = update(sample).metrics['value_loss'].numpy()
      gaps = np.abs(np.subtract(expected, value_loss))
      assert gaps.min() < 1e-4
      found.add(gaps.argmin())
    assert len(found) > 1

  def test_advantages_are_standardized_in_each_minibatch(self):
    # Each unroll is one, so that their order does not matter.
    config = dataclasses.replace(LSTM, num_minibatches=B, learning_rate=1e-12)
    network, update = make(config)
    network.normalizer = None
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

  def test_runs_are_repeatable(self):
    # The premise of the next test.
    np.testing.assert_array_equal(usual_run(), run_updates())

  @pytest.mark.parametrize(
    'changes',
    rare_cases.daily(
      [
        {'max_gradient_norm': 0.01},
        {'adam_epsilon': 1.0},
        {'num_epochs': 2},
        {'clip_epsilon': 0.5},
        {'value_clip_epsilon': 0.01},
        {'baseline_cost': 0.1},
        {'entropy_cost': 0.0},
        {'normalize_advantages': False},
        {'max_abs_reward': 0.5},
        {'scale_rewards': True},
        {'discount': 0.5},
        {'lambda_': 0.1},
      ],
      [{'max_gradient_norm': 0.01}, {'adam_epsilon': 1.0}, {'num_epochs': 2}],
    ),
  )
  def test_settings_have_an_effect(self, changes):
    assert np.abs(usual_run() - run_updates(**changes)).max() > 1e-4

  @pytest.mark.parametrize('rate', [np.float64(0.05), 1])
  def test_learning_rates_of_other_types(self, rate):
    found = []
    for learning_rate in (rate, float(rate)):
      tf.random.set_seed(0)
      network, update = make(
        dataclasses.replace(CONFIG, learning_rate=learning_rate)
      )
      update(make_sample(network))
      found.append([v.numpy() for v in network.trainable_variables])
    tree.map_structure(np.testing.assert_array_equal, *found)

  def test_anneals(self):
    config = dataclasses.replace(CONFIG, anneal_learner_steps=4)
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

  def test_order_is_new_in_each_update_and_follows_from_the_seed(self):
    config = dataclasses.replace(CONFIG, num_minibatches=5)

    def learn(seed):
      tf.random.set_seed(seed)
      network, update = make(config)
      for _ in range(2):
        update(make_sample(network))
      return arrays(network), update._noise.seed()[1]

    (first, num_seeds), (same, _), (other, _) = learn(1), learn(1), learn(2)
    assert num_seeds == 2
    for array, equal in zip(first, same):
      np.testing.assert_array_equal(array, equal)
    assert any(np.any(x != y) for x, y in zip(first, other))

  def test_learns_continuous_actions(self):
    spec = SPEC._replace(actions=specs.BoundedArray((2,), np.float32, -1, 1))
    config = dataclasses.replace(CONFIG, num_epochs=2, num_minibatches=2)
    network, update = make(config, spec)
    before = arrays(network)
    metrics = update(make_sample(network, spec, lag=0.0)).metrics
    np.testing.assert_allclose(metrics['importance_ratio'], 1, atol=1e-4)
    for old, new in zip(before, arrays(network), strict=True):
      assert np.any(old != new)

  def test_gives_no_priorities_and_learns_all_variables(self):
    for config in (CONFIG, LSTM):
      network, update = make(config)
      before = arrays(network)
      result = update(make_sample(network))
      assert result.priorities is None
      for old, new in zip(before, arrays(network), strict=True):
        assert np.any(old != new)
