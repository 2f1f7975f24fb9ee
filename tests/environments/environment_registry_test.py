"""Tests of `environments/registry/registry.py`."""

import configparser
import pathlib
import pickle
import re
import subprocess
import sys
import urllib.error
from unittest import mock

import numpy as np
import pytest
import tree
from bsuite.utils import datasets

from repertory.environments.registry import registry
from repertory.environments.values import argument_checks


def _hide(package):
  """Makes a package appear to be missing."""
  loaded = [name for name in sys.modules if name.partition('.')[0] == package]
  return mock.patch.dict(sys.modules, dict.fromkeys([package, *loaded]))


@pytest.mark.parametrize(
  ('name', 'shape'),
  [
    pytest.param('catch', (10, 5), id='catch'),
    pytest.param('catch:12x7', (12, 7), id='catch_of_another_size'),
    pytest.param('memory_chain', (3,), id='memory_chain'),
    pytest.param('memory_chain:30', (3,), id='memory_chain_of_another_length'),
    pytest.param('reach', (10, 10, 2), id='reach'),
    pytest.param('gym:CartPole-v1', (4,), id='gymnasium'),
  ],
)
def test_make(name, shape):
  environment = registry.make(name, seed=0)
  assert environment.observation_spec().shape == shape
  assert environment.reset().observation.shape == shape
  environment.close()


@pytest.mark.parametrize(
  ('name', 'length'), [('memory_chain', 10), ('memory_chain:3', 3)]
)
def test_length_of_memory_chain(name, length):
  environment = registry.make(name, seed=0)
  environment.reset()
  num_steps = 1
  while not environment.step(0).last():
    num_steps += 1
  assert num_steps == length + 1


@pytest.mark.parametrize(
  'name', ['catch', 'memory_chain', 'gym:CartPole-v1', 'gym:Pendulum-v1']
)
def test_single_precision(name):
  environment = registry.make(name, seed=0)
  specs = (
    environment.observation_spec(),
    environment.action_spec(),
    environment.reward_spec(),
    environment.discount_spec(),
  )
  for spec in tree.flatten(specs):
    assert spec.dtype.itemsize == 4


@pytest.mark.parametrize(
  ('name', 'expected'),
  [
    ('catch:6x5', False),
    ('gym:CartPole-v1', False),
    ('gym:phys2d/CartPole-v1', False),
    ('dm_control:cartpole/swingup?nested=true', False),
    ('tensor:gymnax/Breakout-MinAtar', False),
    ('no such name', False),
    ('gym:my_module:Mine-v0', True),
    ('my_module:make', True),
    ('package.module:Class.make?path=a:b', True),
  ],
)
def test_names_of_modules_are_known_without_an_import(name, expected):
  assert registry.names_module(name) == expected


@pytest.mark.parametrize('name', ['catch', 'memory_chain', 'gym:CartPole-v1'])
def test_factory_can_be_pickled(name):
  factory = registry.make_factory(name)
  copy = pickle.loads(pickle.dumps(factory))
  assert copy == factory

  def observe(make, seed):
    environment = make(seed)
    return [environment.reset().observation for _ in range(5)]

  np.testing.assert_array_equal(observe(copy, 3), observe(factory, 3))
  assert not np.array_equal(observe(copy, 3), observe(factory, 4))


def test_names():
  entries = registry.names()
  assert [entry.pattern for entry in entries] == [
    'catch',
    'catch:<rows>x<columns>',
    'memory_chain',
    'memory_chain:<length>',
    'reach',
    'gym:<id>',
    'atari:<game>',
    'envpool:<id>',
    'dm_control:<domain>/<task>',
    'bsuite:<experiment>/<number>',
    'minigrid:<id>',
    'minatar:<game>',
    'tensor:catch',
    'tensor:catch:<rows>x<columns>',
    'tensor:memory_chain',
    'tensor:memory_chain:<length>',
    'tensor:cartpole',
    'tensor:pendulum',
    'tensor:lock',
    'tensor:minatar/asterix',
    'tensor:minatar/breakout',
    'tensor:minatar/freeway',
    'tensor:minatar/seaquest',
    'tensor:minatar/space_invaders',
    'tensor:gymnax/<id>',
    '<module>:<factory>',
  ]
  for entry in entries:
    for line in (
      entry.description,
      *(option.description for option in entry.options),
    ):
      assert line
      assert '\n' not in line
  assert [entry.requirement for entry in entries[:4]] == [''] * 4


def test_requirements_are_extras_of_the_setup():
  setup = configparser.ConfigParser()
  setup.read(pathlib.Path(__file__).parents[2] / 'setup.cfg')
  extras = setup['options.extras_require']
  entries = [e for e in registry.names()[4:] if e.requirement]
  assert len(entries) == 8
  for entry in entries:
    found = re.fullmatch(r"pip install 'repertory\[(.+)\]'", entry.requirement)
    assert found[1] in extras


@pytest.mark.parametrize(
  ('name', 'package', 'extra'),
  [
    ('atari:Pong', 'ale_py', 'atari'),
    ('envpool:CartPole-v1', 'envpool', 'envpool'),
    ('dm_control:cheetah/run', 'dm_control', 'dm-control'),
    ('bsuite:catch/0', 'bsuite', 'bsuite'),
    ('minigrid:MiniGrid-Empty-5x5-v0', 'minigrid', 'minigrid'),
    ('minatar:breakout', 'minatar', 'minatar'),
    ('gym:CartPole-v1', 'gymnasium', 'gymnasium'),
  ],
)
def test_missing_package(name, package, extra):
  factory = registry.make_factory(name)
  message = (
    rf"^Environment '{re.escape(name)}' cannot be made.*package {package}"
    rf".*pip install 'repertory\[{extra}\]'"
  )
  with _hide(package):
    with pytest.raises(ImportError, match=message):
      factory(0)
    with pytest.raises(ImportError, match=message):
      factory.make_batch([0] * 8)


@pytest.mark.parametrize(
  ('name', 'package', 'message'),
  [
    ('gym:LunarLander-v3', 'Box2D', r"install 'repertory\[box2d\]'$"),
    ('gym:CarRacing-v3', 'Box2D', r"install 'repertory\[box2d\]'$"),
    ('gym:phys2d/CartPole-v1', 'jax', 'jax'),
  ],
)
def test_missing_package_of_an_environment(name, package, message):
  factory = registry.make_factory(name)
  message = f"^Environment '{name}' cannot be made.*{message}"
  with _hide(package):
    with pytest.raises(ImportError, match=message):
      factory(0)
    with pytest.raises(ImportError, match=message):
      factory.make_batch([0] * 8)


def test_pictures_that_do_not_come():
  factory = registry.make_factory('bsuite:mnist/0')
  message = 'downloaded.*mnist/0.*no route'
  failing = mock.Mock(side_effect=urllib.error.URLError('no route'))
  with (
    mock.patch.object(datasets, '_download', failing),
    pytest.raises(ValueError, match=message),
  ):
    factory(0)


@pytest.mark.parametrize(
  ('name', 'message'),
  [
    ('atari:Pong?', "one of the options .*noops=30.*got ''"),
    ('catch?', "this name has none, got ''"),
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
    ('gym:CartPole-v1?threads=1', 'channels_first=false; got .threads.'),
    ('catch?rows=3', 'this name has none'),
  ],
)
def test_wrong_options(name, message):
  with pytest.raises(ValueError, match=f'`name`: .*{message}'):
    registry.make_factory(name)


@pytest.mark.parametrize(
  ('name', 'suggestion'),
  [
    ('cach', "'catch'"),
    ('Catch', "'catch'"),
    ('cach:12x7', "'catch:12x7'"),
    ('cach:12', "'catch:<rows>x<columns>'"),
    ('memory-chain', "'memory_chain'"),
    ('memory_chian:30', "'memory_chain:30'"),
    ('gim:CartPole-v1', "'gym:CartPole-v1'"),
    ('gymnasium:CartPole-v1', "'gym:CartPole-v1'"),
    ('CartPole-v1', "'gym:CartPole-v1'"),
    ('Pong', "'atari:Pong'"),
    ('spaceinvaders?stack=2', "'atari:SpaceInvaders'"),
    ('tensor:cartpol', "'tensor:cartpole'"),
    ('gymnax:Asterix-MinAtar', "'tensor:gymnax/Asterix-MinAtar'"),
  ],
)
def test_unknown_name(name, suggestion):
  with pytest.raises(
    ValueError,
    match=f'`name`.*got {re.escape(repr(name))}. Did you mean {suggestion}.*'
    'repertory environm',
  ):
    registry.make_factory(name)


@pytest.mark.parametrize(
  ('name', 'expected'),
  [
    ('catch:12', 'catch or catch:<rows>x<columns>'),
    ('memory_chain:long', 'memory_chain or memory_chain:<length>'),
    ('gym:', 'gym:<id>'),
  ],
)
def test_unknown_name_of_a_known_family(name, expected):
  message = f'`name`: expected {expected}, got {name!r}. `repertory environm'
  with pytest.raises(ValueError, match=re.escape(message)):
    registry.make_factory(name)


def test_nothing_alike():
  with pytest.raises(ValueError) as raised:
    registry.make('zzzzzz', seed=0)
  assert 'Did you mean' not in str(raised.value)
  assert 'gym:<id>' in str(raised.value)


def test_factory_checks_numbers_at_once():
  with pytest.raises(ValueError, match=r'`rows`.*at least 2, got 1'):
    registry.make_factory('catch:1x5')
  with pytest.raises(ValueError, match=r'`length`.*at least 1, got 0'):
    registry.make_factory('memory_chain:0')


def test_errors_keep_the_argument():
  for name, argument, problem in (
    ('catch:1x5', 'rows', 'expected an integer of at least 2, got 1.'),
    ('cach', 'name', 'expected a known name, got '),
    ('catch?x=1', 'name', "in 'catch?x=1', expected no options"),
  ):
    with pytest.raises(argument_checks.ArgumentError) as raised:
      registry.make_factory(name)
    for error in (
      raised.value,
      pickle.loads(pickle.dumps(raised.value)),
    ):
      assert error.argument == argument
      assert error.problem.startswith(problem)
      assert str(error) == f'`{argument}`: {error.problem}'


def test_unknown_gymnasium_id():
  with pytest.raises(
    ValueError, match=r'exist\. Did you mean .CartPole-v1'
  ) as e:
    registry.make('gym:CartPol-v1', seed=0)
  assert str(e.value).count('Did you mean') == 1  # Gymnasium suggests one, too.


def test_gymnasium_is_imported_only_when_needed():
  # In another process, because other tests have imported gymnasium.
  program = (
    'import sys\n'
    'from repertory.environments import wrappers\n'
    'from repertory.environments.batches import batch\n'
    'from repertory.environments.registry import registry\n'
    'registry.names()\n'
    "registry.make_factory('gym:CartPole-v1')\n"
    "registry.make_factory('atari:Pong?noops=0')\n"
    "registry.make('catch', seed=0)\n"
    "assert 'gymnasium' not in sys.modules\n"
    "registry.make('gym:CartPole-v1', seed=0)\n"
    "assert 'gymnasium' in sys.modules\n"
  )
  subprocess.run([sys.executable, '-c', program], check=True, timeout=120)
