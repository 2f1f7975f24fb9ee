"""Tests that the conformance tests of policies and updates find errors."""

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from repertory.components import interfaces, specs, testing, types

_NUMBER = specs.Array((), np.float32)
_SPEC = specs.EnvironmentSpec(
  observations=specs.Array((3,), np.float32),
  actions=specs.BoundedArray((2,), np.float32, -1, 1),
  rewards=_NUMBER,
  discounts=_NUMBER,
)


class _Policy(interfaces.Policy):
  """A policy that sums observations, with noise by id and count."""

  def initial_state(self, environment_ids):
    ids = tf.constant(list(environment_ids), tf.float32)
    return {
      'id': ids,
      'count': tf.zeros_like(ids),
      'memory': tf.zeros([len(ids), 2]),
    }

  def reset_state(self, state, first):
    memory = tf.where(first[:, None], 0.0, state['memory'])
    return {**state, 'memory': memory}

  def step(self, observation, state):
    memory = 0.5 * state['memory'] + observation[:, :2]
    noise = tf.sin(5 * state['id'] + state['count'])
    return interfaces.PolicyOutput(
      action=self._limit(memory + self._noise(noise[:, None])),
      extras=(),
      state={**state, 'count': state['count'] + 1, 'memory': memory},
    )

  def _limit(self, action):
    return tf.tanh(action)

  def _noise(self, noise):
    return noise


def _act_always(policy, observation, step_type, state):
  state = policy.reset_state(state, tf.equal(step_type, 0))
  return policy.step(observation, state)


# Methods that are wrong, by the conformance test that must fail.
_WRONG_POLICIES = {
  'state_follows_from_the_environment_ids_alone': {
    'initial_state': lambda policy, ids: _Policy.initial_state(
      policy, range(len(ids))
    )
  },
  'actions_fit_the_spec': {
    '_limit': lambda policy, action: 2 * tf.tanh(10 * action)
  },
  'same_state_same_output': {
    '_noise': lambda policy, noise: tf.random.uniform(noise.shape)
  },
  'rows_are_independent': {
    '_limit': lambda policy, action: tf.tanh(action - tf.reduce_mean(action, 0))
  },
  'ended_rows_keep_their_state': {'act': _act_always},
  'episodes_begin_without_memory': {
    'reset_state': lambda policy, state, first: state
  },
  'compiles_for_any_number_of_rows': {
    '_limit': lambda policy, action: (
      tf.tanh(action) + 0.0 * action[tf.argmax(action[:, 0])]
    )
  },
}


class _Policies(testing.PolicyConformance):
  policy_class: type[_Policy] = _Policy

  def make_spec(self):
    return _SPEC

  def make_policy(self):
    return self.policy_class()


class TestPolicy(_Policies):
  pass


@pytest.mark.parametrize('check', _WRONG_POLICIES)
def test_finds_wrong_policies(check):
  checks = _Policies()
  checks.policy_class = type('Wrong', (_Policy,), _WRONG_POLICIES[check])
  with pytest.raises((AssertionError, ValueError, AttributeError)):
    getattr(checks, f'test_{check}')()


class _Update(interfaces.Update):
  """An update that learns rewards from first observations, with momentum."""

  def __init__(self, network):
    super().__init__()
    self.network = network
    self.momentum = tf.Variable(tf.zeros_like(network.w))

  def __call__(self, sample):
    data = sample.data
    with tf.GradientTape() as tape:
      values = self.network(data.observation[:, :-1])[..., 0]  # [B, T]
      errors = self._mask(data) * (values - data.reward)
      loss = tf.reduce_mean(errors**2)
    gradient = tape.gradient(loss, self.network.w)
    self.momentum.assign(0.9 * self.momentum + gradient)
    self.network.w.assign_sub(self._rate() * self.momentum)
    return interfaces.UpdateResult(
      {'loss': self._metric(loss)},
      tf.reduce_mean(tf.abs(errors), -1),
    )

  @property
  def exports(self):
    return {'policy': [self.network.w]}

  def _mask(self, data):
    return tf.cast(data.mask, tf.float32)

  def _rate(self):
    return 0.1

  def _metric(self, loss):
    return loss


class _KeepsOthers(_Update):
  def __init__(self, network):
    super().__init__(network)
    variable = tf.Variable(0.0)
    self.others = lambda: variable  # Not found by `variables`.

  @property
  def exports(self):
    return {**super().exports, 'other': [self.others()]}


class _Annealing(_Update):
  """Counts outside of its variables."""

  num_calls = 0

  def _rate(self):
    self.num_calls += 1
    return 0.1 / self.num_calls


class _Growing(_Update):
  """Adds a variable to its network in the constructor."""

  def __init__(self, network):
    super().__init__(network)
    network.more = tf.Variable(0.0)


def _wrong_update(**methods):
  return type('Wrong', (_Update,), methods)


class _Updates(testing.UpdateConformance):
  update_class: type[_Update] = _Update

  def make_network(self):
    network = snt.Linear(1, with_bias=False)
    network(tf.zeros([1, 3]))
    network.w.assign(tf.ones([3, 1]))
    return network

  def make_update(self, network):
    return self.update_class(network)

  def make_sample(self, seed):
    random = np.random.default_rng(seed)
    numbers = {
      'observation': random.normal(size=[4, 7, 3]),
      'first': np.zeros([4, 7], bool),
      'action': random.normal(size=[4, 6, 2]),
      'reward': random.normal(size=[4, 6]),
      'discount': np.ones([4, 6]),
      'mask': np.ones([4, 6], bool),
    }
    tensors = {
      name: tf.constant(x, tf.bool if x.dtype == bool else tf.float32)
      for name, x in numbers.items()
    }
    return types.Sample(
      types.Sequence(
        **tensors, extras=(), state=(), version=tf.zeros([4], tf.int64)
      ),
      keys=tf.range(4),
      probabilities=tf.ones([4], tf.float64),
      table_sizes=tf.ones([4], tf.int64),
    )


@pytest.mark.parametrize(
  ('update_class', 'check'),
  [
    (_KeepsOthers, 'exports_belong_to_its_variables'),
    (
      _wrong_update(_metric=lambda update, loss: tf.stack([loss, loss])),
      'metrics_are_finite_scalars',
    ),
    (_Annealing, 'all_it_knows_is_in_its_variables'),
    (_Growing, 'its_variables_exist_beforehand'),
    (
      _wrong_update(
        _metric=lambda update, loss: tf.stack([loss, loss])[
          tf.cast(loss > 0.1, tf.int32)
        ]
      ),
      'compiles',
    ),
    (
      _wrong_update(_mask=lambda update, data: 1.0),
      'padding_counts_for_nothing',
    ),
  ],
)
def test_finds_wrong_updates(update_class, check):
  checks = _Updates()
  checks.update_class = update_class
  with pytest.raises((AssertionError, AttributeError, ValueError)):
    getattr(checks, f'test_{check}')()
