"""Tests that reading a run's directory runs no code named in it."""

import json
import os

import pytest

from repertory import launch
from repertory.components.checkpoints import checkpointing
from repertory.launch.cli import commands as command_line

_IDENTITY = {
  'agent': 'dqn', 'environment': 'catch', 'seed': 0, 'num_environments': 1,
}  # fmt: skip
_SHELL = 'subprocess:Popen?args=touch marker&shell=true'
_WEAPONS = {
  'a shell': {'environment': _SHELL},
  'a module': {'environment': 'weapon:make'},
  'a module that registers': {'environment': 'gym:weapon:Weapon-v0'},
  'an agent': {'agent': 'weapon:Builder'},
}
_COMMANDS = {
  'evaluate --best': ('evaluate', '--directory=run', '--best'),
  'export': ('export', '--directory=run', 'output'),
  'record': ('record', '--directory=run', 'output'),
}
_CALLS = {
  'load_policy': launch.load_policy,
  'evaluate': lambda run, **settings: launch.evaluate(run, 1, **settings),
  'record': lambda run, **settings: launch.record(run, 1, 'output', **settings),
}


@pytest.fixture(autouse=True)
def marker(write_module, tmp_path):
  """Returns the file that the module `weapon` creates when imported."""
  path = tmp_path / 'marker'
  write_module('weapon', f"open({str(path)!r}, 'w').close()")
  return path


def _write_run(identity):
  state = {
    'experiment': identity,
    'counts': {'steps': 1, 'learner_steps': 1, 'runs': 1},
  }
  for folder in ('checkpoints', 'best'):
    checkpointing.Checkpointer(f'run/{folder}').save({}, state)


@pytest.mark.parametrize(
  ('weapon', 'arguments'), [*zip(_WEAPONS, [*_COMMANDS.values()] * 2)]
)
def test_commands_import_nothing_that_a_run_names(
  marker, capsys, arguments, weapon
):
  _write_run({**_IDENTITY, **_WEAPONS[weapon]})
  assert command_line.run(arguments) == 2
  err = capsys.readouterr().err
  (name,) = _WEAPONS[weapon].values()
  assert f'--trust must be set to read run, which has the {name!r}' in (
    err.replace('agent ', '').replace('environment ', '')
  )
  assert not marker.exists()


@pytest.mark.parametrize('call', _CALLS.values(), ids=_CALLS)
def test_python_imports_nothing_that_a_run_names(marker, call):
  _write_run({**_IDENTITY, **_WEAPONS['a module']})
  with pytest.raises(ValueError, match=r'^trust must be set'):
    call('run')
  assert not marker.exists()


@pytest.mark.parametrize(
  'arguments', [['--trust'], ['--agent=weapon:Builder'], ['--env=catch']]
)
def test_flags_allow_the_module(marker, capsys, arguments):
  _write_run({**_IDENTITY, 'agent': 'weapon:Builder'})
  assert command_line.run(['evaluate', '--directory=run', *arguments]) == 2
  is_named = arguments != ['--env=catch']
  assert marker.exists() == is_named
  err = capsys.readouterr().err
  assert ("module 'weapon'" in err) == is_named  # It has no builder.


def test_another_name_than_that_of_the_run_is_refused(capsys):
  _write_run(_IDENTITY)
  code = command_line.run(['evaluate', '--directory=run', '--env=reach'])
  assert code == 2
  assert (
    "--env must be that of the checkpoint in run, 'catch', or left out; got "
    "'reach'."
  ) in capsys.readouterr().err


@pytest.mark.parametrize('wrong', [{'agent': 3}, {'num_environments': 0}])
def test_other_types_are_refused(capsys, wrong):
  _write_run({**_IDENTITY, **wrong})
  assert command_line.run(['evaluate', '--directory=run']) == 2
  (name,) = wrong
  err = capsys.readouterr().err
  assert f'The checkpoint in run must have {name!r} of type ' in err


def test_a_checkpoint_without_names_is_refused(capsys):
  _write_run(json.loads('[]'))
  assert command_line.run(['evaluate', '--directory=run']) == 2
  assert 'must have names and settings of its' in capsys.readouterr().err


@pytest.mark.parametrize(
  ('wrong', 'problem'),
  [
    ({'environment': 'cathc'}, "'catch'"),
    ({'config.n_step': 0}, 'n_step must be at least 1, got 0'),
  ],
)
def test_errors_name_the_checkpoint(capsys, wrong, problem):
  identity = {**_IDENTITY, **wrong}
  _write_run(identity)
  assert command_line.run(['evaluate', '--directory=run']) == 2
  err = capsys.readouterr().err
  expected = (
    f"repertory: The checkpoint in run is of 'dqn' on "
    f"'{identity['environment']}', which this version cannot make: "
  )
  assert err.startswith(expected)
  assert problem in err.removeprefix(expected)
  assert '`name`' not in err


@pytest.mark.parametrize('arguments', _COMMANDS.values(), ids=_COMMANDS)
def test_advice_about_damage_fits_the_command(capsys, arguments):
  _write_run(_IDENTITY)
  for folder in ('checkpoints', 'best'):
    os.truncate(f'run/{folder}/00000001/arrays.npz', 1)
  assert command_line.run(arguments) == 2
  err = capsys.readouterr().err
  assert err.endswith('. Restore it from a copy.\n')
  assert '00000001 cannot be read: arrays.npz should have ' in err
  assert 'fresh' not in err
