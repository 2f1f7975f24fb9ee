"""Tests of `agents/registry.py`."""

import dataclasses

from absl.testing import absltest, parameterized

from repertory.agents import agent_config, builder, dqn, registry
from repertory.components import settings as settings_lib


class GetTest(parameterized.TestCase):
  def test_all_agents_can_be_had(self):
    names = [agent.name for agent in registry.agents()]
    self.assertIn('dqn', names)
    self.assertLen(set(names), len(names))
    for agent in registry.agents():
      self.assertIs(registry.get(agent.name), agent)
      self.assertNotEmpty(agent.description)
      made = registry.make_builder(agent.name, {})
      self.assertIsInstance(made, builder.Builder)
      self.assertIsInstance(made, agent.builder_class)
      self.assertEqual(made.config, agent.config_class())
      self.assertIsInstance(made.config, agent_config.AgentConfig)
      self.assertTrue(agent.config_class.__dataclass_params__.frozen)

  def test_typo(self):
    with self.assertRaisesRegex(
      ValueError, r"one of .*, dqn, .*; got 'dqm'. Did you mean 'dqn'\?"
    ):
      registry.get('dqm')

  def test_nothing_near(self):
    with self.assertRaisesRegex(ValueError, r"got 'xyzzy'\.$"):
      registry.get('xyzzy')


class SettingsTest(parameterized.TestCase):
  @parameterized.parameters([[agent.name] for agent in registry.agents()])
  def test_every_field_is_told_of(self, name):
    config = registry.get(name).config_class()
    settings = registry.settings(name)
    self.assertEqual(
      [s.name for s in settings], [f.name for f in dataclasses.fields(config)]
    )
    for setting in settings:
      self.assertNotEmpty(setting.help, setting.name)
      self.assertNotIn('\n', setting.help)
      self.assertEqual(setting.default, getattr(config, setting.name))

  def test_by_hand(self):
    by_name = {s.name: s for s in registry.settings('dqn')}
    self.assertEqual(
      by_name['hidden_sizes'],
      settings_lib.Setting(
        name='hidden_sizes',
        type='tuple[int, ...]',
        default=dqn.DQNConfig().hidden_sizes,
        help='Layers of the network before its head.',
      ),
    )
    self.assertEqual(by_name['n_step'].type, 'int')
    self.assertEqual(by_name['error_buffer'].type, 'float | None')
    # Of what every agent has, without a word of DQN's.
    self.assertEqual(
      by_name['prefetch'].help, 'Batches prepared ahead of the learner.'
    )


class MakeBuilderTest(parameterized.TestCase):
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
    self.assertEqual(
      made.config,
      dqn.DQNConfig(
        hidden_sizes=(32, 16),
        dueling=False,
        n_step=5,
        learning_rate=1e-4,
        error_buffer=None,
        discount=1.0,
        batch_size=16,
      ),
    )

  @parameterized.parameters(
    ('learning_rat', 'learning_rate'),
    ('epsilonbase', 'epsilon_base'),
    ('nstep', 'n_step'),
    ('Double', 'double'),
  )
  def test_typo(self, typo, meant):
    with self.assertRaisesRegex(
      ValueError,
      f"config.{typo} is no setting of agent 'dqn'. Did you mean '{meant}'"
      r'\? `repertory agents dqn` lists them',
    ):
      registry.make_builder('dqn', {typo: '1'})

  def test_nothing_near(self):
    with self.assertRaisesRegex(
      ValueError, "config.zzz is no setting of agent 'dqn'. `repertory"
    ):
      registry.make_builder('dqn', {'zzz': '1'})

  def test_wrong_type_names_the_setting(self):
    with self.assertRaisesRegex(
      ValueError, "config.n_step must be of type int, got 'three'"
    ):
      registry.make_builder('dqn', {'n_step': 'three'})

  def test_values_are_checked(self):
    with self.assertRaisesRegex(ValueError, 'n_step must be at least 1, got 0'):
      registry.make_builder('dqn', {'n_step': '0'})

  def test_every_setting_goes_through_text(self):
    # What `repertory train` prints can be given back to it.
    defaults = dqn.DQNConfig()
    texts = {
      field.name: str(getattr(defaults, field.name))
      for field in dataclasses.fields(defaults)
    }
    self.assertEqual(registry.make_builder('dqn', texts).config, defaults)


class PresetTest(parameterized.TestCase):
  def test_every_preset_is_a_config_that_differs(self):
    for agent in registry.agents():
      for preset, settings in agent.presets.items():
        with self.subTest(agent=agent.name, preset=preset):
          config = registry.make_builder(agent.name, {}, preset).config
          default = agent.config_class()
          self.assertNotEmpty(settings)
          for field, value in settings.items():
            self.assertEqual(getattr(config, field), value)
            self.assertNotEqual(getattr(default, field), value, field)

  def test_settings_override_it(self):
    config = registry.make_builder('dqn', {'n_step': '7'}, 'atari').config
    self.assertEqual(config.n_step, 7)
    self.assertEqual(config.max_abs_reward, 1)

  def test_typo(self):
    with self.assertRaisesRegex(
      ValueError,
      r"preset of agent 'dqn' must be one of atari; got 'atary'. "
      "Did you mean 'atari'",
    ):
      registry.make_builder('dqn', {}, 'atary')

  def test_there_are_none(self):
    with self.assertRaisesRegex(
      ValueError, "preset of agent 'd4pg' must be left out, .*; got 'atari'"
    ):
      registry.make_builder('d4pg', {}, 'atari')


if __name__ == '__main__':
  absltest.main()
