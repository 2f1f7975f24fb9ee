"""Tests of `agents/interface/registry.py`."""

import dataclasses

import numpy as np
import pytest

from repertory.agents import dqn
from repertory.agents.interface import agent_config, builder, registry
from repertory.components import specs
from repertory.components.config import settings as settings_lib
from support.agents import known_agents


class TestGet:
  def test_all_agents_can_be_had(self):
    names = [agent.name for agent in registry.agents()]
    assert 'dqn' in names
    assert len(set(names)) == len(names)
    for agent in registry.agents():
      assert registry.get(agent.name) is agent
      assert agent.description
      made = registry.make_builder(agent.name, {})
      assert isinstance(made, builder.Builder)
      assert isinstance(made, agent.builder_class)
      assert made.config == agent.config_class()
      assert isinstance(made.config, agent_config.AgentConfig)
      assert agent.config_class.__dataclass_params__.frozen

  def test_typo(self):
    with pytest.raises(
      ValueError,
      match=r"got 'dqm'\. Did you mean 'dqn'\? Choose one of .*, dqn, ",
    ):
      registry.get('dqm')

  def test_nothing_near(self):
    with pytest.raises(ValueError, match=r"got 'xyzzy'\. Choose one of "):
      registry.get('xyzzy')


class TestSettings:
  @pytest.mark.parametrize('name', [agent.name for agent in registry.agents()])
  def test_every_field_is_described(self, name):
    config = registry.get(name).config_class()
    settings = registry.settings(name)
    assert [s.name for s in settings] == [
      f.name for f in dataclasses.fields(config)
    ]
    for setting in settings:
      assert setting.help, setting.name
      assert '\n' not in setting.help
      assert setting.default == getattr(config, setting.name)

  def test_by_hand(self):
    by_name = {s.name: s for s in registry.settings('dqn')}
    assert by_name['hidden_sizes'] == settings_lib.Setting(
      name='hidden_sizes',
      type='tuple[int, ...]',
      default=dqn.DQNConfig().hidden_sizes,
      help='Hidden layer sizes of the network before its head.',
    )
    assert by_name['n_step'].type == 'int'
    assert by_name['error_buffer'].type == 'float | None'
    # An inherited setting.
    assert by_name['prefetch'].help == (
      'Number of batches that the replay server prefetches.'
    )


class TestImageTorso:
  @pytest.mark.parametrize('name', [agent.name for agent in registry.agents()])
  def test_suits_the_image_by_default(self, name):
    settings = {s.name: s for s in registry.settings(name)}
    assert settings['image_torso'].default == 'auto'
    is_discrete = 'discrete' in known_agents.AGENTS[name].actions
    for size, torso in ((84, 'nature_0'), (10, 'minatar_0')):
      spec = specs.EnvironmentSpec(
        observations=specs.Array((size, size, 4), np.uint8),
        actions=(
          specs.DiscreteArray(3)
          if is_discrete
          else specs.BoundedArray((2,), np.float32, -1, 1)
        ),
        rewards=specs.Array((), np.float32),
        discounts=specs.Array((), np.float32),
      )
      network = registry.make_builder(
        name, {'previous_action_and_reward': False} if name == 'r2d2' else {}
      ).make_network(spec)
      names = [variable.name for variable in network.variables]
      assert any(f'/{torso}/' in name for name in names), names


class TestMakeBuilder:
  def test_text_and_values(self):
    made = registry.make_builder(
      'dqn',
      {
        'hidden_sizes': '(32,16)',
        'dueling': 'false',
        'n_step': '5',
        'learning_rate': '1e-4',
        'error_buffer': 'None',
        'discount': 1,
        'batch_size': 16,
      },
    )
    assert made.config == dqn.DQNConfig(
      hidden_sizes=(32, 16),
      dueling=False,
      n_step=5,
      learning_rate=1e-4,
      error_buffer=None,
      discount=1.0,
      batch_size=16,
    )

  @pytest.mark.parametrize(
    ('typo', 'meant'),
    [
      ('learning_rat', 'learning_rate'),
      ('epsilonbase', 'epsilon_base'),
      ('nstep', 'n_step'),
      ('Double', 'double'),
    ],
  )
  def test_typo(self, typo, meant):
    with pytest.raises(
      ValueError,
      match=f"config.{typo} is no setting of agent 'dqn'. "
      rf"Did you mean '{meant}'\? `repertory agents dqn` lists them",
    ):
      registry.make_builder('dqn', {typo: '1'})

  def test_nothing_near(self):
    with pytest.raises(
      ValueError, match=r"config.zzz is no setting of agent 'dqn'. `repertory"
    ):
      registry.make_builder('dqn', {'zzz': '1'})

  def test_wrong_type_names_the_setting(self):
    with pytest.raises(
      ValueError, match=r"config.n_step must be of type int, got 'three'"
    ):
      registry.make_builder('dqn', {'n_step': 'three'})

  def test_values_are_checked(self):
    with pytest.raises(ValueError, match='n_step must be at least 1, got 0'):
      registry.make_builder('dqn', {'n_step': '0'})

  def test_every_setting_goes_through_text(self):
    # The printed values of `repertory train` are valid arguments.
    defaults = dqn.DQNConfig()
    texts = {
      field.name: str(getattr(defaults, field.name))
      for field in dataclasses.fields(defaults)
    }
    assert registry.make_builder('dqn', texts).config == defaults


class TestPreset:
  def test_every_preset_is_a_config_that_differs(self):
    for agent in registry.agents():
      for preset, settings in agent.presets.items():
        config = registry.make_builder(agent.name, {}, preset).config
        default = agent.config_class()
        assert settings, (agent.name, preset)
        for field, value in settings.items():
          assert getattr(config, field) == value, (agent.name, preset)
          assert getattr(default, field) != value, field

  def test_atari_of_dqn_is_in_steps_of_four_frames(self):
    config = registry.make_config('dqn', {}, 'atari')
    assert config.epsilon_anneal_steps == 250_000 / 4
    # 200 million frames, and an update every four steps.
    steps_per_update = config.batch_size / config.samples_per_insert
    assert steps_per_update == 4
    num_updates = 200_000_000 / 4 / steps_per_update
    assert config.importance_anneal_learner_steps == num_updates
    assert config.importance_exponent == 0.4

  def test_settings_override_it(self):
    config = registry.make_builder('dqn', {'n_step': '7'}, 'atari').config
    assert config.n_step == 7
    assert config.max_abs_reward == 1

  def test_typo(self):
    with pytest.raises(
      ValueError,
      match=r"preset of agent 'dqn' must be one of atari, cql, dqfd, minatar, "
      r"rainbow, rainbow_small; got 'atary'\. Did you mean 'atari'\?$",
    ):
      registry.make_builder('dqn', {}, 'atary')

  @pytest.mark.parametrize(
    ('agent', 'preset', 'owners'),
    [
      ('sac', 'minatar', 'dqn, impala, pqn'),
      ('d4pg', 'mujoco', 'ppo'),
      ('ppo', 'dm_control', 'd4pg, mpo, sac'),
    ],
  )
  def test_one_of_other_agents(self, agent, preset, owners):
    with pytest.raises(
      ValueError,
      match=rf"got '{preset}'\. Agents with a preset of that name: {owners}\.$",
    ):
      registry.make_builder(agent, {}, preset)

  def test_there_are_none(self, monkeypatch):
    bare = dataclasses.replace(registry.get('d4pg'), presets={})
    two = bare, registry.get('dqn')
    monkeypatch.setattr(registry, 'agents', lambda: two)
    with pytest.raises(
      ValueError,
      match=r"preset of agent 'd4pg' must be left out, .*; got 'atari'\. "
      r'Agents with a preset of that name: dqn\.',
    ):
      registry.make_builder('d4pg', {}, 'atari')

  def test_minatar_of_dqn_takes_its_games(self):
    spec = specs.EnvironmentSpec(
      observations=specs.Array((10, 10, 4), np.float32),
      actions=specs.DiscreteArray(6),
      rewards=specs.Array((), np.float32),
      discounts=specs.Array((), np.float32),
    )
    made = registry.make_builder('dqn', {}, 'minatar')
    # A step, a learner step.
    assert made.config.samples_per_insert == made.config.batch_size
    sizes = [v.shape for v in made.make_network(spec).trainable_variables]
    # The authors' network: 8 × 8 × 16 features and 128 units.
    assert sorted(map(tuple, sizes)) == sorted(
      [(3, 3, 4, 16), (16,), (1024, 128), (128,), (128, 6), (6,)]
    )
