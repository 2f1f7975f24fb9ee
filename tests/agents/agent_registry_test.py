"""Tests of `agents/interface/registry.py`."""

import dataclasses

import numpy as np
import pytest

from repertory.agents import dqn
from repertory.agents.interface import builder, registry
from repertory.components import specs
from repertory.components.config import settings as settings_lib


def test_all_agents_are_registered():
  names = [agent.name for agent in registry.agents()]
  assert len(set(names)) == len(names)
  for agent in registry.agents():
    assert registry.get(agent.name) is agent
    assert agent.description
    made = registry.make_builder(agent.name, {})
    assert isinstance(made, builder.Builder)
    assert made.config == agent.config_class()
    assert type(made)().config == made.config  # The declared class's default.
    assert agent.config_class.__dataclass_params__.frozen
    for preset, settings in agent.presets.items():
      config = registry.make_builder(agent.name, {}, preset).config
      for field, value in settings.items():
        assert getattr(config, field) == value, (agent.name, preset)
        assert getattr(made.config, field) != value, field


@pytest.mark.parametrize(
  ('name', 'message'),
  [
    ('dqm', r"got 'dqm'\. Did you mean 'dqn'\? Choose one of .*, dqn, "),
    ('xyzzy', r"got 'xyzzy'\. Choose one of "),
  ],
)
def test_rejects_unknown_agents(name, message):
  with pytest.raises(ValueError, match=message):
    registry.get(name)


def test_describes_settings():
  described = settings_lib.describe(registry.get('dqn').config_class)
  by_name = {setting.name: setting for setting in described}
  assert by_name['hidden_sizes'] == settings_lib.Setting(
    name='hidden_sizes',
    type='tuple[int, ...]',
    default=dqn.DQNConfig().hidden_sizes,
    help='Hidden layer sizes of each network, before its head.',
  )
  assert by_name['error_buffer'].type == 'float | None'


@pytest.mark.parametrize('name', ['dqn', 'r2d2', 'sac'])
def test_image_torso_is_chosen_by_image_size(name):
  for size, torso in ((84, 'nature_0'), (10, 'minatar_0')):
    spec = specs.EnvironmentSpec(
      observations=specs.Array((size, size, 4), np.uint8),
      actions=(
        specs.DiscreteArray(3)
        if name != 'sac'
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
        'hidden_sizes': '(32,16)', 'dueling': 'false', 'n_step': '5',
        'learning_rate': '1e-4', 'error_buffer': 'None', 'discount': 1,
      },
    )  # fmt: skip
    assert made.config == dqn.DQNConfig(
      hidden_sizes=(32, 16), dueling=False, n_step=5, learning_rate=1e-4,
      error_buffer=None, discount=1.0,
    )  # fmt: skip

  def test_printed_values_are_valid_text(self):
    defaults = dqn.DQNConfig()
    texts = {n: str(v) for n, v in dataclasses.asdict(defaults).items()}
    assert registry.make_builder('dqn', texts).config == defaults

  @pytest.mark.parametrize(
    ('settings', 'message'),
    [
      (
        {'learning_rat': '1'},
        "config.learning_rat is not a setting of agent 'dqn'. Did you mean "
        r"'learning_rate'\? `repertory agents dqn` lists its",
      ),
      ({'lr': '1'}, "Did you mean 'learning_rate'"),
      ({'zzz': '1'}, "config.zzz is not a setting of agent 'dqn'. `repertory"),
      (
        {'core': 'lstm'},
        r'Agents with this setting: impala, ppo, pqn, r2d2, vmpo\.',
      ),
      ({'hidden_sizes': 'tuple(1,2)'}, 'hidden_sizes must be of type tuple'),
      ({'n_step': 'three'}, "config.n_step must be of type int, got 'three'"),
      ({'n_step': '0'}, 'n_step must be at least 1, got 0'),
    ],
  )
  def test_rejects_settings(self, settings, message):
    with pytest.raises(ValueError, match=message):
      registry.make_builder('dqn', settings)


class TestPreset:
  def test_atari_of_dqn_is_in_steps_of_four_frames(self):
    config = registry.make_config('dqn', {}, 'atari')
    assert config.epsilon_anneal_steps == 250_000 / 4
    # 200 million frames, and an update every four steps.
    steps_per_update = config.batch_size / config.samples_per_insert
    assert steps_per_update == 4
    num_updates = 200_000_000 / 4 / steps_per_update
    assert config.importance_anneal_learner_steps == num_updates

  def test_settings_override_it(self):
    config = registry.make_builder('dqn', {'n_step': '7'}, 'atari').config
    assert config.n_step == 7
    assert config.max_abs_reward == 1

  @pytest.mark.parametrize(
    ('agent', 'preset', 'message'),
    [
      (
        'dqn', 'atary',
        r"preset of agent 'dqn' must be one of auto, none, atari, cql, dqfd, "
        r"minatar, rainbow, rainbow_small; got 'atary'\. Did you mean "
        r"'atari'\?$",
      ),
      (
        'sac', 'minatar',
        r"'minatar'\. Agents with a preset of that name: dqn, impala, pqn\.$",
      ),
      ('vmpo', 'atari', r"'vmpo' must be one of auto, none; .*'atari'"),
    ],
  )  # fmt: skip
  def test_rejects(self, agent, preset, message):
    with pytest.raises(ValueError, match=message):
      registry.make_builder(agent, {}, preset)

  def test_minatar_of_dqn_has_the_authors_network(self):
    spec = specs.EnvironmentSpec(
      observations=specs.Array((10, 10, 4), np.float32),
      actions=specs.DiscreteArray(6),
      rewards=specs.Array((), np.float32),
      discounts=specs.Array((), np.float32),
    )
    made = registry.make_builder('dqn', {}, 'minatar')
    sizes = [v.shape for v in made.make_network(spec).trainable_variables]
    # 8 × 8 × 16 features and 128 units.
    assert sorted(map(tuple, sizes)) == sorted(
      [(3, 3, 4, 16), (16,), (1024, 128), (128,), (128, 6), (6,)]
    )
