"""Tests of `environments/registry.py`."""

import configparser
import pathlib
import pickle
import re
import subprocess
import sys
import urllib.error
from unittest import mock

import numpy as np
import tree
from absl.testing import absltest, parameterized
from bsuite.utils import datasets

from repertory.environments import argument_checks, registry


def _hide(package):
  """Lets a package be missing."""
  loaded = [name for name in sys.modules if name.partition('.')[0] == package]
  return mock.patch.dict(sys.modules, dict.fromkeys([package, *loaded]))


class RegistryTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('catch', 'catch', (10, 5)),
    ('catch_of_another_size', 'catch:12x7', (12, 7)),
    ('memory_chain', 'memory_chain', (3,)),
    ('memory_chain_of_another_length', 'memory_chain:30', (3,)),
    ('gymnasium', 'gym:CartPole-v1', (4,)),
  )
  def test_make(self, name, shape):
    environment = registry.make(name, seed=0)
    self.assertEqual(environment.observation_spec().shape, shape)
    self.assertEqual(environment.reset().observation.shape, shape)
    environment.close()

  @parameterized.parameters(('memory_chain', 10), ('memory_chain:3', 3))
  def test_length_of_memory_chain(self, name, length):
    environment = registry.make(name, seed=0)
    environment.reset()
    num_steps = 1
    while not environment.step(0).last():
      num_steps += 1
    self.assertEqual(num_steps, length + 1)

  @parameterized.parameters(
    'catch', 'memory_chain', 'gym:CartPole-v1', 'gym:Pendulum-v1'
  )
  def test_single_precision(self, name):
    environment = registry.make(name, seed=0)
    specs = (
      environment.observation_spec(),
      environment.action_spec(),
      environment.reward_spec(),
      environment.discount_spec(),
    )
    for spec in tree.flatten(specs):
      self.assertEqual(spec.dtype.itemsize, 4)

  @parameterized.parameters('catch', 'memory_chain', 'gym:CartPole-v1')
  def test_factory_can_be_pickled(self, name):
    factory = registry.make_factory(name)
    copy = pickle.loads(pickle.dumps(factory))
    self.assertEqual(copy, factory)

    def observe(make, seed):
      environment = make(seed)
      return [environment.reset().observation for _ in range(5)]

    np.testing.assert_array_equal(observe(copy, 3), observe(factory, 3))
    self.assertFalse(np.array_equal(observe(copy, 3), observe(factory, 4)))

  def test_names(self):
    entries = registry.names()
    self.assertEqual(
      [entry.pattern for entry in entries],
      [
        'catch',
        'catch:<rows>x<columns>',
        'memory_chain',
        'memory_chain:<length>',
        'gym:<id>',
        'atari:<game>',
        'envpool:<id>',
        'dm_control:<domain>/<task>',
        'bsuite:<experiment>/<number>',
        'minigrid:<id>',
        'minatar:<game>',
      ],
    )
    for entry in entries:
      for line in (
        entry.description,
        *(option.description for option in entry.options),
      ):
        self.assertNotEmpty(line)
        self.assertNotIn('\n', line)
    self.assertEqual([entry.requirement for entry in entries[:4]], [''] * 4)

  def test_requirements_are_extras_of_the_setup(self):
    setup = configparser.ConfigParser()
    setup.read(pathlib.Path(__file__).parents[2] / 'setup.cfg')
    extras = setup['options.extras_require']
    for entry in registry.names()[4:]:
      found = re.fullmatch(
        r"pip install 'repertory\[(.+)\]'", entry.requirement
      )
      self.assertIn(found[1], extras)

  @parameterized.parameters(
    ('atari:Pong', 'ale_py', 'atari'),
    ('envpool:CartPole-v1', 'envpool', 'envpool'),
    ('dm_control:cheetah/run', 'dm_control', 'dm-control'),
    ('bsuite:catch/0', 'bsuite', 'bsuite'),
    ('minigrid:MiniGrid-Empty-5x5-v0', 'minigrid', 'minigrid'),
    ('minatar:breakout', 'minatar', 'minatar'),
    ('gym:CartPole-v1', 'gymnasium', 'gymnasium'),
  )
  def test_missing_package(self, name, package, extra):
    factory = registry.make_factory(name)
    message = (
      rf"^Environment '{re.escape(name)}' cannot be made.*package {package}"
      rf".*pip install 'repertory\[{extra}\]'"
    )
    with _hide(package):
      with self.assertRaisesRegex(ImportError, message):
        factory(0)
      with self.assertRaisesRegex(ImportError, message):
        factory.make_batch([0] * 8)

  @parameterized.parameters(
    ('gym:LunarLander-v3', 'Box2D', r'gymnasium\[box2d\]'),
    ('gym:phys2d/CartPole-v1', 'jax', 'jax'),
    ('gym:unheard_of:Chess-v0', 'unheard_of', 'unheard_of'),
  )
  def test_missing_package_of_an_environment(self, name, package, message):
    factory = registry.make_factory(name)
    message = f"^Environment '{name}' cannot be made.*{message}"
    with _hide(package):
      with self.assertRaisesRegex(ImportError, message):
        factory(0)
      with self.assertRaisesRegex(ImportError, message):
        factory.make_batch([0] * 8)

  def test_pictures_that_do_not_come(self):
    factory = registry.make_factory('bsuite:mnist/0')
    message = 'downloaded.*mnist/0.*no route'
    failing = mock.Mock(side_effect=urllib.error.URLError('no route'))
    with (
      mock.patch.object(datasets, '_download', failing),
      self.assertRaisesRegex(ValueError, message),
    ):
      factory(0)

  @parameterized.parameters(
    ('atari:Pong?', "one of the options .*noops=30.*got ''"),
    ('catch?', "there are none here, got ''"),
    ('atari:Pong?lives=1', 'sticky_actions=0, life_loss=false.*got .lives.'),
    ('atari:Pong?life_los=true', 'Did you mean .life_loss.'),
    ('atari:Pong?life_loss=yes', "life_loss to be true or false, got 'yes'"),
    ('atari:Pong?life_loss', 'each option once'),
    ('atari:Pong?noops=1&noops=2', 'each option once'),
    ('atari:Pong?noops=1.5', 'noops to be an integer from 0 to 255'),
    ('atari:Pong?sticky_actions=2', 'a number from 0 to 1, got .2.'),
    ('atari:Pong?sticky_actions=nan', 'a number from 0 to 1'),
    ('atari:Pong?max_frames=0', 'an integer from 1 to'),
    ('atari:Pong?max_frames=3000000000', 'an integer from 1 to'),
    ('gym:CartPole-v1?threads=1', 'there are none here'),
    ('catch?rows=3', 'there are none here'),
  )
  def test_wrong_options(self, name, message):
    with self.assertRaisesRegex(ValueError, f'`name`: .*{message}'):
      registry.make_factory(name)

  @parameterized.parameters(
    ('cach', "'catch'"),
    ('Catch', "'catch'"),
    ('cach:12x7', "'catch:12x7'"),
    ('catch:12', "'catch:<rows>x<columns>'"),
    ('memory-chain', "'memory_chain'"),
    ('memory_chian:30', "'memory_chain:30'"),
    ('memory_chain:long', "'memory_chain:<length>'"),
    ('gim:CartPole-v1', "'gym:CartPole-v1'"),
    ('gymnasium:CartPole-v1', "'gym:CartPole-v1'"),
    ('CartPole-v1', "'gym:CartPole-v1'"),
    ('gym:', "'gym:<id>'"),
  )
  def test_unknown_name(self, name, suggestion):
    with self.assertRaisesRegex(
      ValueError,
      f'`name`.*got {name!r}. Did you mean {suggestion}.*repertory environm',
    ):
      registry.make_factory(name)

  def test_nothing_alike(self):
    with self.assertRaises(ValueError) as raised:
      registry.make('zzzzzz', seed=0)
    self.assertNotIn('Did you mean', str(raised.exception))
    self.assertIn('gym:<id>', str(raised.exception))

  def test_factory_checks_numbers_at_once(self):
    with self.assertRaisesRegex(ValueError, '`rows`.*at least 2, got 1'):
      registry.make_factory('catch:1x5')
    with self.assertRaisesRegex(ValueError, '`length`.*at least 1, got 0'):
      registry.make_factory('memory_chain:0')

  def test_errors_keep_the_argument(self):
    for name, argument, problem in (
      ('catch:1x5', 'rows', 'expected an integer of at least 2, got 1.'),
      ('cach', 'name', 'expected one of catch, '),
      ('catch?x=1', 'name', "in 'catch?x=1', expected no options"),
    ):
      with self.assertRaises(argument_checks.ArgumentError) as raised:
        registry.make_factory(name)
      for error in (
        raised.exception,
        pickle.loads(pickle.dumps(raised.exception)),
      ):
        self.assertEqual(error.argument, argument)
        self.assertStartsWith(error.problem, problem)
        self.assertEqual(str(error), f'`{argument}`: {error.problem}')

  def test_unknown_gymnasium_id(self):
    with self.assertRaisesRegex(ValueError, 'Did you mean.*CartPole-v1'):
      registry.make('gym:CartPol-v1', seed=0)

  def test_gymnasium_is_imported_only_when_needed(self):
    # In a process of its own, as other tests have imported gymnasium.
    program = (
      'import sys\n'
      'from repertory.environments import batch, registry, wrappers\n'
      'registry.names()\n'
      "registry.make_factory('gym:CartPole-v1')\n"
      "registry.make_factory('atari:Pong?noops=0')\n"
      "registry.make('catch', seed=0)\n"
      "assert 'gymnasium' not in sys.modules\n"
      "registry.make('gym:CartPole-v1', seed=0)\n"
      "assert 'gymnasium' in sys.modules\n"
    )
    subprocess.run([sys.executable, '-c', program], check=True, timeout=120)


if __name__ == '__main__':
  absltest.main()
