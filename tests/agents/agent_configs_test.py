"""Tests of the configs of all agents, and of their base classes."""

import dataclasses
import typing
from collections.abc import Callable
from typing import Any, Optional

import numpy as np
import pytest

from repertory import launch
from repertory.agents import (
  bc,
  crr,
  d4pg,
  dqn,
  impala,
  iql,
  mpo,
  ppo,
  pqn,
  r2d2,
  sac,
  vmpo,
)
from repertory.agents.interface import agent_config, registry
from repertory.agents.reward_models import sqil
from repertory.components.config import settings
from repertory.environments.registry import registry as environments_registry
from support.agents import known_agents, sequence_updates, transition_updates

_NAN, _INF = float('nan'), float('inf')
_NAMES = known_agents.NAMES

# Invalid values by setting, and the expected message: each kind of bound once,
# and all others.
_REFUSED = {
  'dqn': {
    'batch_size': (0, 'at least 1'), 'n_step': (0, 'at least 1'),
    'importance_anneal_learner_steps': (0, 'at least 1'),
    'learning_rate': (0.0, 'positive'), 'max_gradient_norm': (0.0, 'positive'),
    'huber_threshold': (_NAN, 'positive'),
    'min_priority': (_INF, 'finite in single precision'),
    'discount': (1.1, r'in \[0, 1\]'),
    'munchausen_alpha': (_NAN, r'in \[0, 1\]'),
    'prefetch': (-1, 'at least 0'), 'margin': (-0.1, 'at least 0'),
    'munchausen_clip': (0.1, 'at most 0'),
    'epsilon_base': (0, r'in \(0, 1\], or 0 with noisy networks'),
    'distribution': ('c51', r"one of \['none', 'categorical', .*\]"),
    'num_atoms': (1, 'at least 2'), 'vmin': (_INF, 'finite'),
    'vmax': (-100.0, r'above vmin = -100\.0, by a finite number'),
    'hidden_sizes': ((16, -1), 'a tuple of integers of at least 1'),
    'image_torso': ('Nature', r"one of \['auto', 'nature', .*\]"),
  },
  'crr': {
    'hidden_sizes': ((), 'at least one'),
    'advantage_weights': ('linear', r"one of \['exp', 'binary'\]"),
    'advantage_baseline': ('least', r"one of \['mean', 'max'\]"),
    'max_weight': (0.5, 'at least 1'),
  },
  'd4pg': {'hidden_sizes': ((), 'at least one')},
  'impala': {'max_c': (1.5, None)},
  'iql': {
    'expectile': (1.0, 'between 0 and 1'), 'max_weight': (0.5, 'at least 1'),
    'target_update_rate': (1.5, r'in \[0, 1\]'),
  },
  'mpo': {
    'hidden_sizes': ((), 'at least one'),
    'distribution': ('quantile', 'one of'),
  },
  'ppo': {'shared_sizes': ((4, 0), 'a tuple'), 'core': ('x', 'one of')},
  'pqn': {'epsilon_base': (0.0, r'in \(0, 1\]')},
  'qtopt': {
    'num_elites': (65, 'at most num_samples = 64'),
    'target_update_rate': (0.0, 'positive'),
    'samples_per_target': (2.0, 'left out without train_buffer_size'),
  },
  'r2d2': {
    'core': ('none', 'one of'),
    'sequence_period': (17, r'in \[1, unroll_length\] = \[1, 16\]'),
    'n_step': (17, r'at most unroll_length = 16'),
    'epsilon_base': (0.0, r'in \(0, 1\]'),
  },
  'sac': {
    'body': ('mpl', 'one of'), 'critic_body': ('mpl', 'one of'),
    'dropout_rate': (0.1, "0 for critics of body 'mlp'"),
    'adam_first_decay': (1.0, r'in \[0, 1\)'),
    'num_quantiles': (0, 'at least 1'),
    'num_dropped_quantiles': (1, '0 without num_quantiles'),
    'num_target_critics': (3, 'at most num_critics = 2'),
    'critics_of_policy': ('largest', 'one of'),
    'target_entropy': (_NAN, 'finite'),
  },
}  # fmt: skip


@pytest.mark.parametrize('agent', _REFUSED)
def test_rejects_invalid_values(agent):
  config_class = registry.get(agent).config_class
  for name, (value, expected) in _REFUSED[agent].items():
    message = f'^{name} must be {expected}' if expected else 'must be'
    with pytest.raises(settings.SettingError, match=message):
      config_class(**{name: value})


@pytest.mark.parametrize(
  ('changes', 'expected'),
  [
    (
      {'body': 'simba', 'hidden_sizes': (3, 4)},
      'hidden_sizes must be equal sizes, one for each block',
    ),
    (
      {'critic_body': 'normalized_mlp', 'critic_hidden_sizes': ()},
      'critic_hidden_sizes must be not empty',
    ),
    (
      {'num_quantiles': 5, 'num_dropped_quantiles': 5},
      'num_dropped_quantiles must be less than num_quantiles = 5',
    ),
    ({'num_quantiles': 5}, "critics_of_policy must be 'mean' with quantiles"),
    (
      {**sac.PRESETS['tqc'], 'num_target_critics': 2},
      'num_target_critics must be None with quantiles',
    ),
  ],
)
def test_sac_rejects_combinations(changes, expected):
  with pytest.raises(ValueError, match=expected):
    sac.SACConfig(**changes)


def test_ends_of_ranges_are_valid():
  dqn.DQNConfig(
    batch_size=1, discount=0, importance_exponent=1, prefetch=0,
    epsilon_anneal_steps=0, munchausen_clip=0, hidden_sizes=(), num_atoms=2,
    noisy=True, epsilon_base=0,
  )  # fmt: skip
  sac.SACConfig(
    target_update_rate=1.0, temperature_learning_rate=0.0, num_random_steps=0,
    discount=1.0, target_entropy=-3.0, max_gradient_norm=None,
  )  # fmt: skip


@pytest.mark.parametrize('agent', _NAMES)
def test_each_field_has_a_type_and_a_description(agent):
  config_class = registry.get(agent).config_class
  described = settings.describe(config_class)
  fields = dataclasses.fields(config_class)
  assert [s.name for s in described] == [field.name for field in fields]
  for field, setting in zip(fields, described):
    assert setting.help.endswith('.'), setting.name
    assert setting.default == getattr(config_class(), field.name)
    for wrong in ('1', [1.5]):  # A text must be a known one.
      with pytest.raises(ValueError, match=f'^{field.name} must be '):
        config_class(**{field.name: wrong})
    if type(None) in typing.get_args(field.type):
      assert getattr(config_class(**{field.name: None}), field.name) is None
    else:
      with pytest.raises(ValueError, match=f'^{field.name} .* got None'):
        config_class(**{field.name: None})


@pytest.mark.parametrize(
  ('name', 'value', 'message'),
  [
    ('n_step', True, 'n_step must be an integer, got True.'),
    ('discount', False, 'discount must be a number, got False.'),
    ('prioritized', 1, 'prioritized must be True or False, got 1.'),
    ('error_buffer', 'x', "must be a number or None, got 'x'."),
    ('hidden_sizes', (4, '4'), r"of integers, got \(4, '4'\)."),
    ('learning_rate', 1e39, 'must be finite in single precision, got 1e\\+39'),
  ],
)
def test_messages_name_the_expected_type(name, value, message):
  with pytest.raises(ValueError, match=message):
    dqn.DQNConfig(**{name: value})


def test_numpy_numbers_and_lists_are_valid():
  config = dqn.DQNConfig(
    n_step=np.int64(2), discount=np.float32(0.5), learning_rate=1,
    prioritized=np.bool_(False), hidden_sizes=[8, np.int32(4)],
  )  # fmt: skip
  assert config.n_step == 2


def test_fields_that_users_add():
  @dataclasses.dataclass(frozen=True)
  class Config(dqn.DQNConfig):
    schedule: Callable[[int], float] = float
    betas: tuple[float, ...] = (0.9, 0.999)
    scale: Optional[float] = None  # noqa: UP045, another spelling.
    either: int | str | None = 'x'
    n_step: int = agent_config.default(7, '; 7 here')

  assert Config(scale=2, either=3).n_step == 7
  by_name = {setting.name: setting for setting in settings.describe(Config)}
  assert by_name['n_step'].help == (
    'n of n-step transitions: Rainbow, arXiv:1710.02298, table 1; 7 here.'
  )
  for name in ('scale', 'discount'):
    with pytest.raises(ValueError, match=f'{name} must be a number'):
      Config(**{name: 'x'})


def test_settings_without_a_default_are_required():
  make_silent: Any = agent_config.AgentConfig
  with pytest.raises(TypeError, match="'discount', and 'learning_rate'"):
    make_silent()
  with pytest.raises(TypeError, match='other of Config must be inherited'):

    class Config(agent_config.AgentConfig):
      other: int = agent_config.default(1)


_OF_GTRXL = "None unless core is 'gtrxl', and it is '{}', got 3\\."


@pytest.mark.parametrize(
  ('config_class', 'changes', 'message'),
  [
    (impala.IMPALAConfig, {'core_layers': 3}, _OF_GTRXL.format('none')),
    (r2d2.R2D2Config, {'core_heads': 3}, _OF_GTRXL.format('lstm')),
    (
      pqn.PQNConfig,
      {'core': 'gru', 'core_window': 3},
      _OF_GTRXL.format('gru'),
    ),
    (
      vmpo.VMPOConfig,
      {'core': 'gtrxl', 'core_size': 6},
      'core_size must be a multiple of core_heads = 4, got 6',
    ),
  ],
)
def test_settings_of_cores(config_class, changes, message):
  with pytest.raises(ValueError, match=message):
    config_class(**changes)


def test_core_options():
  assert ppo.PPOConfig(core='lstm').core_options == {}
  given = {'core': 'gtrxl', 'core_layers': 3, 'core_window': 8}
  found = ppo.PPOConfig(**given).core_options
  assert found == {'layers': 3, 'heads': 4, 'window': 8}


def test_bc_has_no_ignored_settings():
  names = {field.name for field in dataclasses.fields(bc.BCConfig)}
  assert names == {
    'hidden_sizes', 'image_torso', 'batch_size', 'learning_rate',
    'adam_epsilon', 'max_gradient_norm', 'jit_compile',
    'normalize_observations',
  }  # fmt: skip


@pytest.mark.parametrize(
  ('changes', 'environments', 'expected'),
  [
    # A tenth of the 2 · 1000 samples due when learning starts. Twice a learner
    # step and the end of an episode are 2 (10 + 2 · 1 · (3 + 1)) = 36.
    pytest.param({}, 1, 200, id='share'),
    # 2 (10 + 2 · 20 · 9).
    pytest.param({'n_step': 9}, 20, 740, id='twice'),
    pytest.param({'error_buffer': 123.0}, 20, 123, id='stated'),
  ],
)
def test_error_buffer(changes, environments, expected):
  config = dqn.DQNConfig(
    batch_size=10, samples_per_insert=2.0, min_replay_size=1000, **changes
  )
  spec = transition_updates.DISCRETE_SPEC
  table = dqn.DQNBuilder(config).experience(spec, environments).table
  found = table.rate_limit.error_buffer
  assert found == pytest.approx(expected, abs=5e-8)


_BOUNDS = {'vmin': -3.0, 'vmax': 4.0}
_CATEGORICAL = {**_BOUNDS, 'distribution': 'categorical'}


@pytest.mark.parametrize(
  ('builder', 'expected'),
  [
    (crr.CRRBuilder(crr.CRRConfig(**_BOUNDS)), (-3, 4)),
    (d4pg.D4PGBuilder(d4pg.D4PGConfig(**_BOUNDS)), (-3, 4)),
    (mpo.MPOBuilder(mpo.MPOConfig(**_CATEGORICAL)), (-3, 4)),
    (mpo.MPOBuilder(mpo.MPOConfig(**_BOUNDS)), None),
    (dqn.DQNBuilder(dqn.DQNConfig(**_CATEGORICAL)), (-3, 4)),
    (dqn.DQNBuilder(dqn.DQNConfig(**_BOUNDS)), None),
    # Their returns are not those of the environment's rewards.
    (
      dqn.DQNBuilder(dqn.DQNConfig(**_CATEGORICAL, max_abs_reward=1.0)),
      None,
    ),
    (
      sqil.SQILBuilder(dqn.DQNBuilder(dqn.DQNConfig(**_CATEGORICAL))),
      None,
    ),
    (iql.IQLBuilder(), None),
  ],
)
def test_bounds(builder, expected):
  assert builder.return_bounds == expected


class TestBatchesOfUnrolls:
  @pytest.mark.parametrize(
    ('builder_class', 'num_environments', 'size'),
    [
      (ppo.PPOBuilder, 1, 8),
      (ppo.PPOBuilder, 3, 9),
      (vmpo.VMPOBuilder, 12, 12),
      (pqn.PQNBuilder, 10, 10),
    ],
  )
  def test_default_batch_size(self, builder_class, num_environments, size):
    experience = builder_class().experience(
      sequence_updates.SPEC, num_environments
    )
    assert experience.batch_size == size
    assert experience.table.max_size == size + num_environments
    experience.check(num_environments)

  def test_given_batch_size(self):
    config = ppo.PPOConfig(batch_size=5)
    assert config.batch_size_for(8) == 5
    assert config.queue_size_for(8) == 13

  @pytest.mark.parametrize(
    ('config_class', 'changes', 'limit'),
    [
      (ppo.PPOConfig, {}, 5),
      (ppo.PPOConfig, {'core': 'gru'}, 2),
      (ppo.PPOConfig, {'normalize_advantages': False}, 10),
      (ppo.PPOConfig, {'core': 'gru', 'unroll_length': 1, 'batch_size': 6}, 3),
      (vmpo.VMPOConfig, {'normalize_advantages': False}, 5),
      (pqn.PQNConfig, {}, 10),
    ],
  )
  def test_minibatches_have_enough_steps(self, config_class, changes, limit):
    given = {'batch_size': 2, 'unroll_length': 5, **changes}
    fits = config_class(**given, num_minibatches=limit)
    assert fits.batch_size_for(1) == given['batch_size']
    config = config_class(**given, num_minibatches=limit + 1)
    message = f'num_minibatches must be at most {limit}, because a batch'
    with pytest.raises(ValueError, match=message):
      config.batch_size_for(1)

  @pytest.mark.parametrize(
    ('given', 'message'),
    [
      # A queue of 8 is full before a batch of 8 and another step are in it.
      ({'max_queue_size': 8}, 'batch_size [+] items per step = 8 [+] 8'),
      ({'core': 'lstm', 'num_minibatches': 9}, 'num_minibatches must be'),
    ],
  )
  def test_runs_that_cannot_learn_do_not_start(self, given, message, tmp_path):
    directory = tmp_path / 'run'
    experiment = launch.Experiment(
      ppo.PPOBuilder(ppo.PPOConfig(**given)),
      environments_registry.make_factory('catch'),
      max_steps=1_000,
      directory=str(directory),
      environments_per_actor=8,
    )
    with pytest.raises(ValueError, match=message):
      launch.run(experiment, display=False)
    assert not directory.exists()
