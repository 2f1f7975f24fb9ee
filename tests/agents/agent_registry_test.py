"""Tests of `agents/registry.py`."""

import dataclasses
from typing import Optional

from absl.testing import absltest, parameterized

from repertory.agents import builder, dqn, registry


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
      self.assertNotEmpty(setting.description, setting.name)
      self.assertNotIn('#', setting.description)
      self.assertNotIn('\n', setting.description)
      self.assertEqual(setting.default, getattr(config, setting.name))

  def test_by_hand(self):
    by_name = {s.name: s for s in registry.settings('dqn')}
    self.assertEqual(
      by_name['hidden_sizes'],
      registry.Setting(
        name='hidden_sizes',
        type='tuple[int, ...]',
        default=dqn.DQNConfig().hidden_sizes,
        description='Layers of the network before its head.',
      ),
    )
    self.assertEqual(by_name['n_step'].type, 'int')
    self.assertEqual(by_name['error_buffer'].type, 'float | None')
    # A comment of several lines becomes one.
    self.assertRegex(
      by_name['jit_compile'].description, '^Compile the update .* without.$'
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


Ints = tuple[int, ...]


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


class WriteWholeTest(parameterized.TestCase):
  @parameterized.parameters(
    ('1e4', ' Write 10000.'),
    ('2.0', ' Write 2.'),
    ('-1E+2', ' Write -100.'),
    ('1.5', ''),
    ('many', ''),
    ('inf', ''),
    ('nan', ''),
    ('1e999999', ''),
    (None, ''),
    ((1,), ''),
  )
  def test_hint(self, value, hint):
    self.assertEqual(registry.write_whole(value), hint)


class ParseTest(parameterized.TestCase):
  @parameterized.parameters(
    ('3', int, 3),
    ('-3', int, -3),
    (3, int, 3),
    ('3', float, 3.0),
    ('1e-3', float, 1e-3),
    ('inf', float, float('inf')),
    (3, float, 3.0),
    (0.5, float, 0.5),
    ('true', bool, True),
    ('True', bool, True),
    ('FALSE', bool, False),
    (False, bool, False),
    (True, bool, True),
    ('text', str, 'text'),
    ('1,2', str, '1,2'),
    ('1,2', Ints, (1, 2)),
    ('(64, 64)', Ints, (64, 64)),
    ('[64,]', Ints, (64,)),
    ('7', Ints, (7,)),
    ('', Ints, ()),
    ('()', Ints, ()),
    ([1, 2], Ints, (1, 2)),
    ((), Ints, ()),
    ('1,2.5', tuple[float, ...], (1.0, 2.5)),
    ('a,b', tuple[str, ...], ('a', 'b')),
    ('true,false', tuple[bool, ...], (True, False)),
    ('None', float | None, None),
    (None, float | None, None),
    ('2', float | None, 2.0),
    (2, float | None, 2.0),
    ('2', int | None, 2),
    ('a', str | None, 'a'),
    ('true', bool | None, True),
    (None, bool | None, None),
    ('2', Optional[int], 2),  # noqa: UP045 (its text differs)
    ('None', Optional[int], None),  # noqa: UP045
  )
  def test_fits(self, value, annotation, expected):
    parsed = registry.parse('x', value, annotation)
    self.assertEqual(parsed, expected)
    self.assertIs(type(parsed), type(expected))
    if isinstance(expected, tuple):
      self.assertEqual([type(p) for p in parsed], [type(e) for e in expected])

  @parameterized.parameters(
    ('3.5', int, 'int'),
    (3.0, int, 'int'),  # As JSON has it: a whole number by chance.
    (True, int, 'int'),
    ('three', int, 'int'),
    ('', int, 'int'),
    ('a', float, 'float'),
    (True, float, 'float'),
    ([1.0], float, 'float'),
    ('1', bool, 'bool'),
    (1, bool, 'bool'),
    ('yes', bool, 'bool'),
    ('1,a', Ints, r'tuple\[int, ...\]'),
    ([1.5], Ints, r'tuple\[int, ...\]'),
    (5, Ints, r'tuple\[int, ...\]'),
    (None, Ints, r'tuple\[int, ...\]'),
    (None, int, 'int'),
    ('None', float, 'float'),
    ('a', float | None, r'float \| None'),
    ('maybe', bool | None, r'bool \| None'),
  )
  def test_does_not_fit(self, value, annotation, type_name):
    with self.assertRaisesRegex(
      ValueError, f'^config.x must be of type {type_name}, got .*'
    ):
      registry.parse('config.x', value, annotation)


class DidYouMeanTest(absltest.TestCase):
  def test_nearest_or_nothing(self):
    known = ['alpha', 'beta']
    self.assertEqual(
      registry.did_you_mean('alhpa', known), " Did you mean 'alpha'?"
    )
    self.assertEqual(registry.did_you_mean('q', known), '')
    self.assertEqual(registry.did_you_mean('q', []), '')


if __name__ == '__main__':
  absltest.main()
