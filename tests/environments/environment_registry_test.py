"""Tests of `environments/registry/registry.py`."""

import configparser
import contextlib
import pathlib
import pickle
import re
import subprocess
import sys
import sysconfig
import urllib.error
from unittest import mock

import pytest
from bsuite.utils import datasets
from packaging import requirements

from repertory.environments.registry import registry
from repertory.environments.values import argument_checks


@contextlib.contextmanager
def _hide(package):
  """Makes a package appear to be missing."""
  loaded = [name for name in sys.modules if name.partition('.')[0] == package]
  # `mock.patch.dict` would unload what is imported meanwhile.
  with pytest.MonkeyPatch.context() as patch:
    for name in (package, *loaded):
      patch.setitem(sys.modules, name, None)
    yield


@pytest.mark.parametrize(
  ('name', 'expected'),
  [
    ('catch:6x5', False),
    ('gym:phys2d/CartPole-v1', False),
    ('no such name', False),
    ('gym:my_module:Mine-v0', True),
    ('package.module:Class.make?path=a:b', True),
  ],
)
def test_names_of_modules_are_known_without_an_import(name, expected):
  assert registry.names_module(name) == expected


_SETUP = configparser.ConfigParser()
_SETUP.read(pathlib.Path(__file__).parents[2] / 'setup.cfg')
_EXTRAS = _SETUP['options.extras_require']


def _at_version(version):
  """Makes this Python appear to be of a version, such as '3.13'."""
  return mock.patch.object(sysconfig, 'get_python_version', lambda: version)


@pytest.mark.parametrize('version', ['3.10', '3.11', '3.12', '3.13'])
def test_requirements_are_extras_of_the_setup(version):
  with _at_version(version):
    needed = {e.extra: e.requirement for e in registry.names() if e.extra}
  assert len(needed) == 8
  here = {'python_version': version, 'platform_machine': 'x86_64'}
  for extra, requirement in needed.items():
    first, *rest = map(requirements.Requirement, _EXTRAS[extra].split('\n')[1:])
    markers = [one.marker for one in (first, *rest) if one.name == first.name]
    if any(marker is None or marker.evaluate(here) for marker in markers):
      assert requirement == f"pip install 'repertory[{extra}]'"
    else:
      assert re.fullmatch(r'Python (3\.\d+(, | or |$))+', requirement)
      assert version not in requirement


@pytest.mark.parametrize(
  ('name', 'package', 'extra', 'version', 'versions'),
  [
    ('tensor:gymnax/CartPole-v1', 'jax', 'gymnax', '3.12', '3.10 or 3.11'),
    (
      'dm_control:cartpole/swingup', 'dm_control', 'dm-control', '3.13',
      '3.10, 3.11 or 3.12',
    ),
  ],
)  # fmt: skip
def test_missing_package_without_a_release_for_this_python(
  name, package, extra, version, versions
):
  factory = registry.make_factory(name)
  with (
    _hide(package),
    _at_version(version),
    pytest.raises(ImportError) as caught,
  ):
    factory(0)
  assert str(caught.value) == (
    f'Python must be {versions} for the extra {extra}, which this environment '
    f'needs, got {version}. Install it there.'
  )


@pytest.mark.parametrize(
  ('name', 'package', 'extra'),
  [
    ('atari:Pong', 'ale_py', 'atari'),
    ('gym:CartPole-v1', 'gymnasium', 'gymnasium'),
    ('gym:LunarLander-v3', 'Box2D', 'box2d'),
  ],
)
def test_missing_package(name, package, extra):
  factory = registry.make_factory(name)
  message = rf"package {package}.*pip install 'repertory\[{extra}\]'"
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
    ('atari:Pong?life_los=true', 'Did you mean .life_loss.'),
    ('atari:Pong?life_loss=yes', "life_loss must be of type bool, got 'yes'"),
    ('atari:Pong?noops=1&noops=2', 'each option once'),
    ('atari:Pong?noops=1.5', 'noops must be of type int'),
    (
      'atari:Pong?sticky_actions=2',
      'sticky_actions must be from 0 to 1, got .2.',
    ),
    ('atari:Pong?max_frames=3000000000', 'max_frames must be from 1 to'),
    ('catch?rows=3', "options channels_first, .*; got 'rows'"),
  ],
)
def test_wrong_options(name, message):
  with pytest.raises(ValueError, match=f'`name`: .*{message}'):
    registry.make_factory(name)


@pytest.mark.parametrize(
  ('name', 'suggestion'),
  [
    ('cach', "'catch'"),
    ('cach:12x7', "'catch:12x7'"),
    ('gymnasium:CartPole-v1', "'gym:CartPole-v1'"),
    ('CartPole-v1', "'gym:CartPole-v1'"),
    ('tensor:cartpol', "'tensor:cartpole'"),
    ('tensor:cach', "'tensor:catch'"),
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
    ('catch:12', 'catch[:<rows>x<columns>]'),
    ('gym:', 'gym:<id>'),
  ],
)
def test_unknown_name_of_a_known_family(name, expected):
  message = f'`name`: expected {expected}, got {name!r}. `repertory environm'
  with pytest.raises(ValueError, match=re.escape(message)):
    registry.make_factory(name)


def test_errors_keep_the_argument():
  for name, argument, problem in (
    ('catch:1x5', 'rows', 'expected an integer of at least 2, got 1.'),
    ('cach', 'name', 'expected a known name, got '),
    (
      'catch?x=1',
      'name',
      "in 'catch?x=1', expected one of the options channels_first",
    ),
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


def test_packages_are_imported_only_when_needed():
  # In another process, because other tests have imported them.
  program = (
    'import sys\n'
    'from repertory.environments import tensor\n'
    'from repertory.environments.registry import registry\n'
    'registry.names()\n'
    "registry.make_factory('gym:CartPole-v1')\n"
    "registry.make_factory('tensor:cartpole')\n"
    "registry.make_factory('catch').make_batch([0])\n"
    "assert not {'gymnasium', 'tensorflow'} & set(sys.modules)\n"
  )
  subprocess.run([sys.executable, '-c', program], check=True, timeout=120)
