"""Tests of normalized observations and rewards of all agents."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.agents import dqn, qtopt
from repertory.agents.dqn import learning
from repertory.agents.interface import registry
from repertory.agents.reward_models import registry as reward_models
from repertory.components import interfaces, learners, networks, types
from repertory.components.config.settings import SettingError
from support.agents import acting_policies, agent_batches, known_agents
from support.system import rare_cases

_BOTH = {'normalize_observations': True, 'normalize_rewards': True}
_LEARNING_FROM_REWARDS = [name for name in known_agents.NAMES if name != 'bc']
_OF_UNROLLS = ['impala', 'ppo', 'pqn', 'vmpo']
_CASES = {
  **{name: (name, {}) for name in _LEARNING_FROM_REWARDS},
  'dqn, quantile': ('dqn', {'distribution': 'quantile', 'num_quantiles': 3}),
  'dqn, c51': ('dqn', {'distribution': 'categorical', 'num_atoms': 6}),
  'mpo, c51': ('mpo', {'distribution': 'categorical', 'num_atoms': 6}),
  'pqn, scaled': ('pqn', {'reward_scale': 0.1}),
}  # fmt: skip
_each = pytest.mark.parametrize(
  'case',
  rare_cases.daily(_CASES, ['dqn', 'r2d2', 'td3', 'impala', 'vmpo']),
)


def _make(case, **settings):
  name, own = _CASES[case]
  builder = agent_batches.make_builder(name, **own, **settings)
  spec = agent_batches.AGENTS[name].spec
  tf.random.set_seed(0)
  network = builder.make_network(spec)
  acting_policies.fill(network.trainable_variables)
  return builder, network, builder.make_update(network, spec)


def _scale_of(update):
  [scale] = [m for m in update.submodules if type(m) is learners.RunningScale]
  return scale


def _make_batch(builder, spec, seed):
  """Makes a batch of transitions or sequences, some of them padded."""
  sample = agent_batches.make_batch(builder, spec, seed)
  data = sample.data
  if isinstance(data, types.Sequence):
    mask = np.ones(data.mask.shape, bool)
    mask[1, -1] = False
    mask[2, -3:] = False
    data = data._replace(
      mask=tf.constant(mask),
      reward=tf.where(mask, data.reward, 0),
      discount=tf.where(mask, data.discount, 0),
    )
  return sample._replace(data=data)


def _observed(data):
  """Returns the observations of the real steps of a batch, `[N, ...]`."""
  if isinstance(data, types.Sequence):
    return data.observation.numpy()[:, :-1][data.mask.numpy()]
  return data.observation.numpy()


@_each
def test_learns_as_without_from_data_normalized_by_hand(case):
  _, network, update = _make(case, **_BOTH)
  _, plain, expected = _make(case, **dict.fromkeys(_BOTH, False))
  builder, spec = _make(case)[0], agent_batches.AGENTS[_CASES[case][0]].spec
  count, mean, variance = network.normalizer.variables
  count.assign(50)
  mean.assign([-0.5, 0.1, 0.3])
  variance.assign([0.2, 0.5, 1e-4])
  for variable, value in zip(_scale_of(update).variables, (50, 0.5, 9.0)):
    variable.assign(value)
  sample = _make_batch(builder, spec, 3)
  result = update(sample)
  divisor = result.metrics['reward_scale'].numpy()
  data = sample.data

  def normalize(observation):
    shifted = observation.numpy() - [-0.5, 0.1, 0.3]
    scaled = shifted / np.sqrt([0.2, 0.5, 1e-4])
    assert (np.abs(scaled) > 10).any()
    return tf.constant(np.clip(scaled, -10, 10), tf.float32)

  by_hand = {'observation': normalize(data.observation)}
  if isinstance(data, types.Transition):
    by_hand['next_observation'] = normalize(data.next_observation)
  data = data._replace(reward=data.reward / divisor, **by_hand)
  reference = expected(sample._replace(data=data))
  assert set(result.metrics) - set(reference.metrics) == {'reward_scale'}
  for name, value in reference.metrics.items():
    np.testing.assert_allclose(
      result.metrics[name], value, rtol=2e-3, atol=1e-4, err_msg=name
    )
  if result.priorities is not None:
    assert reference.priorities is not None
    np.testing.assert_allclose(
      result.priorities, reference.priorities, rtol=1e-3, atol=1e-5
    )
  pairs = zip(network.network.variables, plain.variables, strict=True)
  for ours, theirs in pairs:
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


@_each
def test_scale_is_the_deviation_of_returns(case):
  builder, network, update = _make(case, **_BOTH)
  spec = agent_batches.AGENTS[_CASES[case][0]].spec
  seen, observed = [], []
  for seed in range(3):
    sample = _make_batch(builder, spec, seed)
    data = sample.data
    # Without a discount, returns of unrolls are the rewards.
    data = data._replace(
      reward=(seed + 5) * data.reward, discount=tf.zeros_like(data.discount)
    )
    metrics = update(sample._replace(data=data)).metrics
    mask = data.mask.numpy() if isinstance(data, types.Sequence) else True
    seen.append(data.reward.numpy()[np.broadcast_to(mask, data.reward.shape)])
    rewards = np.concatenate(seen)
    expected = rewards.std()
    if _CASES[case][0] not in _OF_UNROLLS:
      # Of Σ γ^i r_i with independent r of mean 0.
      is_sequence = isinstance(data, types.Sequence)
      steps = 1 if is_sequence else builder.config.n_step
      powers = (builder.config.discount ** (steps * np.arange(20_000))) ** 2
      expected = np.sqrt(np.mean(rewards**2) * powers.sum())
    np.testing.assert_allclose(metrics['reward_scale'], expected, rtol=1e-3)
    observed.append(_observed(data))
    count, mean, variance = network.normalizer.variables
    rows = np.concatenate(observed)
    assert count == len(rows)
    np.testing.assert_allclose(mean, rows.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(variance, rows.var(axis=0), rtol=1e-4)
  assert list(update.learned['return_scale']) == list(
    _scale_of(update).variables
  )
  assert list(update.learned['policy']) == list(network.variables)


def test_nothing_is_added_without_the_settings():
  builder, network, update = _make('dqn')
  assert type(update) is learning.DQNUpdate
  assert 'normalizer' not in vars(network)
  sample = agent_batches.make_batch(
    builder, agent_batches.AGENTS['dqn'].spec, 1
  )
  assert 'reward_scale' not in update(sample).metrics


class _Own(dqn.DQNBuilder):
  """Overrides factories, and calls those of its base."""

  def make_network(self, spec):
    network = super().make_network(spec)
    assert not isinstance(network, networks.NormalizedNetwork)
    return network

  def make_update(self, network, spec):
    return super().make_update(network, spec)

  def additional_loss(self, network, sample):
    assert not isinstance(network, networks.NormalizedNetwork)
    observation = sample.data.observation
    return tf.constant(0.0), {'observed': tf.reduce_mean(observation**2)}


def _own_config(**settings):
  return dataclasses.replace(
    agent_batches.make_builder('dqn').config, **_BOTH, **settings
  )


def test_own_factories_are_normalized_once():
  spec = agent_batches.AGENTS['dqn'].spec
  builder = _Own(_own_config())
  network = builder.make_network(spec)
  assert len(network.variables) == 3 + len(network.network.variables)
  update = builder.make_update(network, spec)
  metrics = update(agent_batches.make_batch(builder, spec, 1)).metrics
  np.testing.assert_allclose(metrics['observed'], 1, rtol=1e-3)
  with pytest.raises(ValueError, match='must be of make_network'):
    builder.make_update(network.network, spec)


def test_reward_models_get_raw_observations():
  spec = agent_batches.AGENTS['dqn'].spec
  model = reward_models.get('rnd')
  builder = model.builder_class(
    agent_batches.make_builder('dqn', n_step=1, **_BOTH)
  )
  network = builder.make_network(spec)
  update = builder.make_update(network, spec)
  sample = agent_batches.make_batch(builder, spec, 1)
  update(sample)
  _, mean, _ = update._rewards._normalizer.variables
  raw = sample.data.next_observation.numpy()
  np.testing.assert_allclose(mean, raw.mean(axis=0), rtol=1e-4)
  np.testing.assert_allclose(
    network.normalizer.variables[1],
    sample.data.observation.numpy().mean(axis=0),
    rtol=1e-4,
  )
  assert not isinstance(network.network, networks.NormalizedNetwork)


class _Unscaled(interfaces.Update):
  def __call__(self, sample):
    raise NotImplementedError


class _OwnUpdate(dqn.DQNBuilder):
  def make_update(self, network, spec):
    return _Unscaled(network)


class TestRefusals:
  def test_bc_has_no_rewards(self):
    with pytest.raises(SettingError, match="is not a setting of agent 'bc'"):
      registry.make_config('bc', {'normalize_rewards': True})

  @pytest.mark.parametrize('name', list(_BOTH))
  def test_bellman_updaters_compute_targets(self, name):
    settings = {'train_buffer_size': 50, name: True}
    builder = agent_batches.make_builder('qtopt', **settings)
    with pytest.raises(SettingError, match=f'{name} must be False if Bellman'):
      builder.experience(agent_batches.AGENTS['qtopt'].spec, 2)

  def test_bounded_returns(self):
    with pytest.raises(SettingError, match='must be False with bounded'):
      qtopt.QTOptConfig(bounded=True, normalize_rewards=True)

  def test_returns_without_discounts(self):
    with pytest.raises(SettingError, match='must be False with discount 1'):
      registry.make_config('td3', {'normalize_rewards': True, 'discount': 1.0})

  def test_updates_without_a_scale(self):
    spec = agent_batches.AGENTS['dqn'].spec
    builder = _OwnUpdate(_own_config())
    network = builder.make_network(spec)
    with pytest.raises(SettingError, match='has no RunningScale'):
      builder.make_update(network, spec)


def test_the_earlier_name_of_the_setting():
  for one in ({'scale_rewards': False}, {'normalize_rewards': False}):
    config = registry.make_config('ppo', one, 'mujoco')
    assert config.normalize_observations
    assert not config.normalize_rewards
  both = {'scale_rewards': True, 'normalize_rewards': False}
  with pytest.raises(SettingError, match='scale_rewards must be left'):
    registry.make_config('ppo', both)


def test_nested_observations_keep_what_is_not_normalized():
  spec = agent_batches.AGENTS['dqn'].spec
  nested = spec._replace(
    observations={'x': spec.observations, 'number': spec.actions}
  )
  builder = agent_batches.make_builder('dqn', **_BOTH)
  network = builder.make_network(nested)
  update = builder.make_update(network, nested)
  sample = agent_batches.make_batch(builder, nested, 1)
  before = tree.map_structure(np.array, sample.data.observation)
  update(sample)
  rows = network.normalizer(sample.data.observation)
  np.testing.assert_array_equal(rows['number'], before['number'])
  np.testing.assert_allclose(np.mean(rows['x'], axis=0), 0, atol=1e-5)
