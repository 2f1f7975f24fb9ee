"""Tests of further extensions of DQN: distributions, noise, Munchausen."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import dqn
from repertory.agents.dqn import return_distributions as rd
from repertory.agents.interface import builder as builder_lib
from support.agents import numpy_categorical, numpy_dqn, transition_updates
from support.system import rare_cases

softmax = numpy_categorical.softmax
SPEC = transition_updates.DISCRETE_SPEC
B, A = transition_updates.B, 3
DISTRIBUTIONS = ('none', 'categorical', 'quantile', 'implicit_quantile')
# Small sizes, and no defaults.
CONFIG = dqn.DQNConfig(
  hidden_sizes=(4, 5),
  huber_threshold=0.7,
  discount=0.9,
  num_atoms=5,
  vmin=-4.0,
  vmax=3.0,
  num_quantiles=4,
  num_taus=3,
  num_target_taus=2,
  num_policy_taus=4,
  noisy_sigma=0.3,
  munchausen_alpha=0.7,
  munchausen_temperature=0.5,
  munchausen_clip=-0.6,
  jit_compile=False,
)


class _Scripted:
  """Records its random numbers, in the order of the calls."""

  def __init__(self):
    self._random = np.random.default_rng(5)
    self.drawn = []

  def normals(self, shape):
    return self._keep(self._random.normal(size=[int(n) for n in shape]))

  def uniforms(self, shape):
    return self._keep(self._random.uniform(size=[int(n) for n in shape]))

  def _keep(self, array):
    self.drawn.append(tf.constant(array, tf.float32))
    return self.drawn[-1]


def make(config):
  """Returns an update with random online and target networks."""
  builder = dqn.DQNBuilder(config)
  update = builder.make_update(builder.make_network(SPEC), SPEC)
  # With these, online and target network choose different actions for some of
  # the states, and no two actions are nearly as good.
  random = np.random.default_rng(1)
  for network in (update._network, update._target_network):
    for variable in sorted(network.variables, key=lambda v: v.name):
      variable.assign(0.5 * random.normal(size=variable.shape))
  return update


class _Twin:
  """The loss of each item in NumPy, from the outputs of the networks.

  It calls them as the update does, with separate noise in each call.
  """

  def __init__(self, config, drawn):
    self.config, self._drawn = config, list(drawn)

  def call(self, network, observation, taus=None):
    inputs = {}
    if taus is not None:
      inputs['taus'] = tf.constant(taus, tf.float32)
    if self.config.noisy:
      inputs['noise'] = tf.tile(self._drawn.pop(0), [B, 1])
    observation = tf.constant(observation, tf.float32)
    return network(observation, **inputs).numpy().astype(float)

  def take_taus(self, number):
    taus = self._drawn.pop(0).numpy()
    assert taus.shape == (B, number)
    return taus

  @property
  def midpoints(self):
    n = self.config.num_policy_taus
    return np.tile((np.arange(n) + 0.5) / n, [B, 1])

  @property
  def atoms(self):
    return numpy_categorical.support(self.config)

  def means(self, outputs):
    """Values of outputs, `[..., N]`."""
    if self.config.distribution == 'none':
      return outputs
    if self.config.distribution == 'categorical':
      return (softmax(outputs) * self.atoms).sum(axis=-1)
    return outputs.mean(axis=-1)

  def values(self, network, observation):
    is_implicit = self.config.distribution == 'implicit_quantile'
    taus = self.midpoints if is_implicit else None
    return self.means(self.call(network, observation, taus))

  def look_ahead(self, online, target, batch):
    """Returns rewards, and outputs, weights and bonuses of the next state."""
    config = self.config
    if config.distribution == 'implicit_quantile':
      drawn = self.take_taus(config.num_target_taus)
      taus = np.concatenate([self.midpoints, drawn], axis=1)
      both = self.call(target, batch['next_observation'], taus)
      n = config.num_policy_taus
      q_t, outputs_t = both[..., :n].mean(axis=2), both[..., n:]
    else:
      outputs_t = self.call(target, batch['next_observation'])
      q_t = self.means(outputs_t)
    if config.munchausen:
      tau = config.munchausen_temperature
      of_first = softmax(self.values(target, batch['observation']) / tau)
      of_taken = of_first[np.arange(B), batch['action']]
      scaled = tau * np.log(of_taken)
      limited = np.maximum(scaled, config.munchausen_clip)
      assert 0 < (limited > scaled).sum() < B, 'The limit is not tried.'
      policy = softmax(q_t / tau)
      rewards = batch['reward'] + config.munchausen_alpha * limited
      return rewards, outputs_t, policy, -tau * np.log(policy)
    if config.double:
      q_t = self.values(online, batch['next_observation'])
    assert np.diff(np.sort(q_t, axis=1)).min() > 1e-4, 'Rounding would choose.'
    weights = np.eye(A)[np.argmax(q_t, axis=1)]
    return batch['reward'], outputs_t, weights, np.zeros([B, A])

  def losses(self, online, target, batch):
    """Returns losses and priorities, `[B]`."""
    config = self.config
    rewards, *next_ones = self.look_ahead(online, target, batch)
    taus = None
    if config.distribution == 'implicit_quantile':
      taus = self.take_taus(config.num_taus)
    outputs = self.call(online, batch['observation'], taus)
    outputs = outputs[np.arange(B), batch['action']]
    assert not self._drawn, 'The update drew more.'
    result = []
    for b, output in enumerate(outputs):
      discount = config.discount * batch['discount'][b]
      of_row = None if taus is None else taus[b]
      next_one = [array[b] for array in next_ones]
      result.append(self.loss(rewards[b], discount, of_row, output, *next_one))
    return np.array(result).T

  def loss(self, reward, discount, taus, output, outputs, weights, bonuses):
    config = self.config
    if config.distribution == 'categorical':
      target = np.zeros(config.num_atoms)
      for of_action, weight, bonus in zip(outputs, weights, bonuses):
        probs = softmax(of_action)[None]
        (part,) = numpy_categorical.project(
          [reward + discount * bonus], [discount], probs, self.atoms
        )
        target += weight * part
      predicted = softmax(output)
      divergence = numpy_categorical.divergences(target, predicted)
      return divergence, divergence
    targets = reward + discount * sum(
      weight * (of_action + bonus)
      for of_action, weight, bonus in zip(outputs, weights, bonuses)
    )
    error = np.mean(targets) - np.mean(output)
    kappa = config.huber_threshold
    if config.distribution == 'none':
      return numpy_dqn.huber(error, kappa), abs(error)
    if taus is None:
      n = config.num_quantiles
      taus = (np.arange(n) + 0.5) / n
    total = 0.0
    for theta, tau in zip(output, taus):
      for y in targets:
        weight = abs(tau - float(y < theta))
        total += (
          weight * numpy_dqn.huber(y - theta, kappa) / kappa / len(targets)
        )
    return total, abs(error)


@pytest.mark.parametrize('noisy', rare_cases.daily([True, False], [True]))
@pytest.mark.parametrize('target', [{}, {'munchausen': True}], ids=str)
@pytest.mark.parametrize('distribution', DISTRIBUTIONS)
def test_losses_and_priorities_equal_the_twin(distribution, target, noisy):
  config = dataclasses.replace(
    CONFIG, distribution=distribution, noisy=noisy, **target
  )
  update = make(config)
  online = update._network
  update._noise = noise = _Scripted()
  batch = transition_updates.make_discrete_batch(0)
  # The twin needs the random numbers first, so it uses earlier variables.
  before = [v.numpy() for v in online.variables]
  result = update(transition_updates.to_sample(batch))
  for variable, array in zip(online.variables, before, strict=True):
    variable.assign(array)
  twin = _Twin(config, noise.drawn)
  of_items, priorities = twin.losses(online, update._target_network, batch)
  weights = numpy_dqn.weights(batch, config)
  loss = float(result.metrics['loss'])
  np.testing.assert_allclose(loss, np.mean(weights * of_items), rtol=1e-3)
  np.testing.assert_allclose(
    np.array(result.priorities), priorities, rtol=1e-3, atol=1e-4
  )


def test_noise_needs_a_network_that_takes_it():
  network = dqn.DQNBuilder(CONFIG).make_network(SPEC)
  builder = dqn.DQNBuilder(dataclasses.replace(CONFIG, noisy=True))
  expected = 'noisy must be False for a network without noise, a Sequential'
  with pytest.raises(ValueError, match=expected):
    builder.make_update(network, SPEC)
  with pytest.raises(ValueError, match=expected):
    builder.make_policy(network, builder_lib.Acting(SPEC, 4, 0))


def make_policy(config, evaluation=False, seed=0):
  builder = dqn.DQNBuilder(config)
  network = make(config)._network
  acting = builder_lib.Acting(SPEC, 4, seed, evaluation=evaluation)
  return network, builder.make_policy(network, acting)


def act(policy, observation, num_steps=12):
  state, actions = policy.initial_state(range(4)), []
  for _ in range(num_steps):
    output = policy.step(observation, state)
    state = output.state
    actions.append(output.action.numpy())
  return np.stack(actions)


_OBSERVATION = tf.constant(
  np.random.default_rng(3).normal(size=(4, 3)), tf.float32
)


class TestPolicies:
  @pytest.mark.parametrize('distribution', DISTRIBUTIONS[1::2])
  def test_evaluation_takes_the_largest_mean(self, distribution):
    config = dataclasses.replace(CONFIG, distribution=distribution, noisy=True)
    network, policy = make_policy(config, evaluation=True)
    # Without noise in the call the layers are those of the means.
    twin = _Twin(dataclasses.replace(config, noisy=False), [])
    twin_values = [
      twin.values(network, np.tile(row, [B, 1]))[0] for row in _OBSERVATION
    ]
    actions = act(policy, _OBSERVATION, num_steps=3)
    np.testing.assert_array_equal(
      actions, np.tile(np.argmax(twin_values, axis=1), [3, 1])
    )

  def test_noise_explores(self):
    config = dataclasses.replace(
      CONFIG,
      distribution='implicit_quantile',
      noisy=True,
      epsilon_base=0.0,
      epsilon_anneal_steps=0,
    )
    _, policy = make_policy(config)
    actions = act(policy, _OBSERVATION)
    assert all(len(set(column)) > 1 for column in actions.T)
    _, other = make_policy(config, seed=1)
    assert (act(other, _OBSERVATION) != actions).any()


@pytest.mark.parametrize(
  ('returns', 'wrong', 'rank'),
  [
    (rd.ExpectedReturn(1.0), [B, A, 5], 2),
    (rd.CategoricalReturn(-1.0, 1.0, 5), [B, A], 3),
    (rd.QuantileReturn(5, 1.0), [B, A], 3),
  ],
)
def test_values_refuse_outputs_of_another_kind(returns, wrong, rank):
  with pytest.raises(ValueError, match=f'outputs must have rank {rank}'):
    returns.values(tf.zeros(wrong))


def test_divergences_below_zero_give_no_priorities_below_zero():
  outputs = np.random.default_rng(0).normal(size=(200, 1, 51))
  outputs = tf.constant(outputs, tf.float32)
  found = rd.CategoricalReturn(-1.0, 1.0, 51).compare(
    outputs[:, 0], None, tf.zeros([200]), tf.ones([200]),
    rd.greedy_bootstrap(outputs, tf.zeros([200, 1])),
  )  # fmt: skip
  assert np.min(found.losses) < 0  # By rounding.
  assert np.min(found.priorities) == 0
  probs = tf.nn.softmax(outputs[:, 0])
  np.testing.assert_allclose(
    found.metrics['share_at_ends'],
    np.mean(probs[:, 0] + probs[:, -1]),
    rtol=1e-4,
  )
