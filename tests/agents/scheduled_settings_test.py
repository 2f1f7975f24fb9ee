"""Tests of schedules in the settings of all agents."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import dqn, ppo
from repertory.agents.interface import agent_config, registry
from repertory.agents.reward_models import rnd
from repertory.components import interfaces, specs
from repertory.components.config import schedules, settings
from support.agents import agent_batches, known_agents
from support.system import rare_cases

# Two values of each setting, which lead to different updates.
_VALUES = {
  'adam_epsilon': (1e-3, 1.0),
  'advantage_scale': (3.0, 1.0),
  'advantage_temperature': (1.0, 0.2),
  'baseline_cost': (0.5, 2.0),
  'behavior_cloning_alpha': (2.5, 0.5),
  'clip_epsilon': (0.5, 0.01),
  'conservative_weight': (1.0, 4.0),
  'dual_learning_rate': (1e-2, 1e-1),
  'entropy_cost': (0.01, 1.0),
  'epsilon': (0.1, 1.0),
  'epsilon_mean': (0.01, 1.0),
  'epsilon_penalty': (1e-3, 1.0),
  'epsilon_policy': (0.01, 1.0),
  'epsilon_stddev': (1e-3, 1.0),
  'expectile': (0.7, 0.9),
  'huber_threshold': (1.0, 0.01),
  'importance_exponent': (0.4, 1.0),
  'lambda_': (0.9, 0.1),
  'learning_rate': (1e-2, 1e-1),
  'margin': (0.8, 0.1),
  'margin_weight': (1.0, 2.0),
  'max_abs_reward': (1.0, 0.5),
  'max_action_gradient_norm': (1e-1, 1e-3),
  'max_c': (0.9, 0.1),
  'max_gradient_norm': (1e-1, 1e-2),
  'max_pg_rho': (2.0, 0.1),
  'max_priority_share': (0.9, 0.1),
  'max_rho': (1.0, 0.95),
  'munchausen_alpha': (0.9, 0.1),
  'munchausen_clip': (-1.0, -1e-2),
  'munchausen_temperature': (0.03, 1.0),
  'policy_learning_rate': (1e-2, 1e-1),
  'rescale_epsilon': (1e-3, 1e-1),
  'target_entropy': (-50.0, 50.0),
  'target_kl': (1e-12, 1e9),
  'target_noise_limit': (0.5, 0.1),
  'target_sigma': (0.2, 0.9),
  'target_update_rate': (0.005, 0.5),
  'temperature_learning_rate': (1e-2, 1e-1),
  'value_clip_epsilon': (0.5, 1e-3),
}


# Settings of updates that use all values above but some.
_DISCRETE = specs.DiscreteArray(2)
_CONTINUOUS = specs.BoundedArray((2,), np.float32, -1, 1)
_KL_PARTS = ('epsilon_mean', 'epsilon_stddev')
_PRIORITIZED = {'prioritized': True}
_CASES = {
  'dqn': ('dqn', _DISCRETE, {**_PRIORITIZED, 'munchausen': True}, ()),
  'mpo': ('mpo', _CONTINUOUS, _PRIORITIZED, ('epsilon_policy',)),
  'mpo_discrete': (
    'mpo', _DISCRETE, _PRIORITIZED, (*_KL_PARTS, 'epsilon_penalty'),
  ),
  'td3': ('td3', _CONTINUOUS, {**_PRIORITIZED, 'policy_update_period': 1}, ()),
  'vmpo': ('vmpo', _DISCRETE, {}, _KL_PARTS),
  'vmpo_continuous': ('vmpo', _CONTINUOUS, {}, ('epsilon_policy',)),
}  # fmt: skip
for _name in known_agents.NAMES:
  _has = {f.name for f in dataclasses.fields(registry.get(_name).config_class)}
  _spec = agent_batches.AGENTS[_name].spec
  _own = {key: _PRIORITIZED[key] for key in _has.intersection(_PRIORITIZED)}
  _CASES.setdefault(_name, (_name, _spec.actions, _own, ()))


def _schedulable(name):
  return set(agent_config.schedulable(registry.get(name).config_class))


def test_all_settings_are_tested():
  assert len(known_agents.NAMES) == 14
  for name in known_agents.NAMES:
    unused = [set(case[3]) for case in _CASES.values() if case[0] == name]
    assert not set.intersection(*unused)
    assert _schedulable(name) <= _VALUES.keys()
  assert set(_VALUES) == set().union(*map(_schedulable, known_agents.NAMES))


def _make_update(case, values):
  """Makes a batch and an update, always with the same parameters."""
  name, actions, own, _ = _CASES[case]
  builder = agent_batches.make_builder(name, **own, **values)
  spec = agent_batches.AGENTS[name].spec._replace(actions=actions)
  tf.random.set_seed(0)
  batch = agent_batches.make_batch(builder, spec, 1)
  size = batch.probabilities.shape[0]
  odds = tf.linspace(tf.constant(0.02, tf.float64), 0.2, size)
  update = builder.make_update(builder.make_network(spec), spec)
  return batch._replace(probabilities=odds), update


def _state(update):
  """Returns all variables but those of schedules and of learning rates."""
  others = {*_VALUES, 'schedule_calls'}
  return [v for v in update.variables if v.name.split(':')[0] not in others]


def _outcome(update, result):
  """Returns metrics, priorities and variables after a call, as arrays."""
  metrics = {k: v for k, v in result.metrics.items() if k not in _VALUES}
  priorities = [] if result.priorities is None else [result.priorities]
  found = [*metrics.values(), *priorities, *_state(update)]
  return [one.numpy().copy() for one in found]


def _are_close(found, expected):
  pairs = zip(found, expected, strict=True)
  return all(np.allclose(*pair, rtol=1e-4, atol=1e-6) for pair in pairs)


def _call_constant(case, values, state=()):
  """Calls an update of constants once, from a state if given."""
  batch, update = _make_update(case, values)
  if state:
    for variable, array in zip(_state(update), state, strict=True):
      variable.assign(array)
  return _outcome(update, interfaces.call_update(update, batch))


@pytest.mark.parametrize(
  'case', rare_cases.daily(_CASES, ['dqn', 'ppo', 'td3'])
)
def test_scheduled_values_are_those_of_constants(case):
  """All settings change in the second call."""
  name, _, _, unused = _CASES[case]
  names = sorted(_schedulable(name).difference(unused))
  before, after = ({n: _VALUES[n][i] for n in names} for i in (0, 1))
  changes = {
    n: schedules.piecewise(before[n], (0.5, after[n]), steps=2) for n in names
  }
  batch, update = _make_update(case, changes)

  @tf.function(autograph=False)
  def call():
    return interfaces.call_update(update, batch)

  call.get_concrete_function()  # Traced before the values change.
  first = call()
  assert {n: float(first.metrics[n]) for n in names} == pytest.approx(before)
  assert _are_close(_outcome(update, first), _call_constant(case, before))
  state = [variable.numpy().copy() for variable in _state(update)]
  second = call()
  assert {n: float(second.metrics[n]) for n in names} == pytest.approx(after)
  found = _outcome(update, second)
  assert _are_close(found, _call_constant(case, after, state))
  for n in names:
    other = _call_constant(case, {**after, n: before[n]}, state)
    assert not _are_close(found, other), f'{n} must have an effect.'


@pytest.mark.parametrize('name', known_agents.NAMES)
def test_refuses_other_settings(name):
  config_class = registry.get(name).config_class
  known = agent_config.schedulable(config_class)
  floats = [
    s.name for s in settings.describe(config_class) if 'float' in s.type
  ]
  assert set(known) <= set(floats)
  message = (
    'must be a constant, because it cannot change in a run, got linear'
    rf'\(0.5,0.1\)\. Settings that may have a schedule: {", ".join(known)}\.$'
  )
  for other in {'batch_size', *floats}.difference(known):
    with pytest.raises(settings.SettingError, match=f'^{other} {message}'):
      config_class(**{other: schedules.linear(0.5, 0.1)})


@pytest.mark.parametrize(
  ('config_class', 'changes', 'message'),
  [
    (
      dqn.DQNConfig,
      {'importance_exponent': schedules.linear(0.4, 1.5)},
      r'importance_exponent must be in \[0, 1\], got 1\.5\.',
    ),
    (
      ppo.PPOConfig,
      {'entropy_cost': schedules.piecewise(0.1, (0.2, -0.1), (0.4, 0.1))},
      r'entropy_cost must be at least 0, got -0\.1\.',
    ),
    (
      dqn.DQNConfig,
      {'munchausen_temperature': schedules.linear(0.1, 0)},
      'munchausen_temperature must be positive, got 0',
    ),
    (
      ppo.PPOConfig,
      {'learning_rate': schedules.linear(1e-3, -1e-3)},
      r'learning_rate must be positive, got -0\.001\.',
    ),
    (
      ppo.PPOConfig,
      {
        **ppo.PRESETS['atari'],
        'clip_epsilon': schedules.cosine(0.1, 0),
      },
      'anneal_learner_steps must be None with a schedule of clip_epsilon, got '
      '9765',
    ),
  ],
)
def test_checks_all_values(config_class, changes, message):
  with pytest.raises(settings.SettingError, match=f'^{message}'):
    config_class(**changes)


def test_learning_rates_may_fall_to_0():
  text = schedules.linear(1e-3, 0)
  assert ppo.PPOConfig(learning_rate=text).learning_rate == 'linear(0.001,0)'


def test_settings_are_parsed_from_text():
  config = registry.make_config(
    'dqn',
    {'learning_rate': 'linear(3e-4,0)', 'max_gradient_norm': 'cosine(1, 2)'},
  )
  assert config.learning_rate == schedules.linear(3e-4, 0)
  assert config.max_gradient_norm == schedules.cosine(1, 2)
  again = registry.make_config('dqn', dataclasses.asdict(config))
  assert again == config
  with pytest.raises(
    settings.SettingError,
    match=r"^config\.learning_rate must be linear\(.*got 'linear\(1\)'\.$",
  ):
    registry.make_config('dqn', {'learning_rate': 'linear(1)'})


def test_wrapped_builders_schedule_once():
  """A reward model has the config of its agent, whose update has schedules."""
  spec = agent_batches.AGENTS['dqn'].spec
  builder = rnd.RNDBuilder(
    agent_batches.make_builder(
      'dqn', n_step=1, learning_rate='linear(1,0,steps=4)'
    )
  )
  update = builder.make_update(builder.make_network(spec), spec)
  batch = agent_batches.make_batch(builder, spec, 1)
  rates = [
    float(interfaces.call_update(update, batch).metrics['learning_rate'])
    for _ in range(6)
  ]
  np.testing.assert_allclose(rates, [1, 0.75, 0.5, 0.25, 0, 0])


def test_annealing_of_ppo_is_a_linear_schedule():
  found = []
  for values in (
    {'anneal_learner_steps': 3},
    {
      'learning_rate': schedules.linear(0.1, 0, steps=3),
      'clip_epsilon': schedules.linear(0.3, 0, steps=3),
    },
  ):
    constants = {'learning_rate': 0.1, 'clip_epsilon': 0.3}
    batch, update = _make_update('ppo', {**constants, **values})
    results = [interfaces.call_update(update, batch) for _ in range(3)]
    policy = [variable.numpy() for variable in update.exports['policy']]
    found.append([results[-1].metrics['clip_fraction'], *policy])
  for one, other in zip(*found, strict=True):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_updates_without_schedules_are_unchanged():
  _, update = _make_update('dqn', {})
  assert type(update).__name__ == 'DQNUpdate'
