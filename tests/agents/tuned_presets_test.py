"""Tests of presets by environment, and of the tables of all agents."""

import functools

import pytest

from repertory.agents.interface import registry, tuned_presets
from repertory.components import specs
from repertory.environments.registry import registry as environments
from repertory.environments.values import argument_checks
from repertory.launch.experiments import naming

_TABLES = {one.name: tuned_presets.table(one.name) for one in registry.agents()}
_ENTRIES = [
  pytest.param(agent, entry, id=f'{agent}-{next(iter(entry.environments))}')
  for agent, entries in _TABLES.items()
  for entry in entries
]
_CARTPOLE = 'gym:CartPole-v1'


@functools.cache
def _spec(name):
  try:
    environment = environments.make(name, seed=0)
  except ImportError as error:
    pytest.skip(str(error))
  spec = specs.make_environment_spec(environment)
  environment.close()
  return spec


@pytest.mark.parametrize(
  ('agent', 'environment', 'found'),
  [
    ('ppo', _CARTPOLE, _CARTPOLE),
    ('ppo', 'gym:CartPole-v0', _CARTPOLE),
    ('ppo', 'tensor:cartpole', _CARTPOLE),
    ('ppo', 'minatar:breakout?ramping=false', 'minatar:asterix'),
    (
      'ppo',
      'minigrid:MiniGrid-DoorKey-5x5-v0',
      'minigrid:MiniGrid-DoorKey-5x5-v0?one_hot=true',
    ),
    ('sac', 'gym:LunarLander-v3', None),
    ('ppo', 'catch', None),
    ('bc', _CARTPOLE, None),
    ('own.module:Builder', _CARTPOLE, None),
  ],
)
def test_find(agent, environment, found):
  tuned = tuned_presets.find(agent, environment)
  assert (tuned and next(iter(tuned.environments))) == found


def test_errors_of_a_table_are_not_hidden(monkeypatch, tmp_path):
  (tmp_path / 'tuned.py').write_text('import no_such_module')
  monkeypatch.setattr('repertory.agents.bc.__path__', [str(tmp_path)])
  with pytest.raises(ModuleNotFoundError, match='no_such_module'):
    tuned_presets.table('bc')


class TestPlan:
  def plan(self, preset, **settings):
    return naming.plan_experiment(
      'ppo', _CARTPOLE, preset=preset, max_steps=1_000, **settings
    )

  def test_auto_is_a_preset_that_settings_override(self):
    plan = self.plan('auto', config={'unroll_length': '16'})
    assert plan.config.unroll_length == 16
    assert plan.config.num_epochs == 20
    for preset in (None, 'none'):
      assert self.plan(preset).config == registry.get('ppo').config_class()

  def test_auto_extends_a_named_preset(self):
    plan = naming.plan_experiment(
      'ppo', 'atari:Pong', preset='auto', max_steps=1_000
    )
    assert plan.config.shared_sizes == (512,)  # Of the preset atari.
    assert plan.config.anneal_learner_steps is None

  def test_number_of_environments(self):
    def number(**settings):
      plan = naming.plan_experiment(
        'ppo', 'gym:Acrobot-v1', max_steps=1_000, **settings
      )
      return plan.experiment.environments_per_actor

    assert number(preset='auto') == 16
    assert number(preset='auto', environments_per_actor=3) == 3
    assert number(preset=None) is None

  def test_unknown_environments_have_the_defaults(self):
    plan = naming.plan_experiment(
      'ppo', 'catch', preset='auto', max_steps=1_000
    )
    assert plan.config == registry.get('ppo').config_class()


@pytest.mark.parametrize(('agent', 'entry'), _ENTRIES)
def test_settings_differ_from_the_preset_that_they_extend(agent, entry):
  base = registry.make_config(agent, {}, entry.base)
  config = registry.make_config(agent, entry.settings, entry.base)
  for name in entry.settings:
    assert getattr(config, name) != getattr(base, name), name
  default = type(config).default_environments_per_actor
  assert entry.environments_per_actor != default
  assert entry.source and entry.steps > 0 and entry.evaluation_episodes > 0
  has_returns = {*entry.environments.values()} != {None}
  assert bool(entry.reference) == has_returns
  for name in entry.environments:
    assert tuned_presets.find(agent, name) is entry


@pytest.mark.parametrize(('agent', 'entry'), _ENTRIES)
def test_settings_fit_the_environment(agent, entry):
  builder = registry.make_builder(agent, entry.settings, entry.base)
  number = entry.environments_per_actor
  number = number or builder.config.default_environments_per_actor
  all_specs = [_spec(name) for name in entry.environments]
  for spec in all_specs:
    builder.experience(spec, number)
  builder.make_network(all_specs[0])


def test_all_environments_of_tables_exist():
  for entries in _TABLES.values():
    for name in (name for entry in entries for name in entry.environments):
      try:
        environments.make_factory(name)
      except argument_checks.ArgumentError as error:
        pytest.fail(f'{name}: {error}')
