"""Tests that closing nodes does not lose results of a run."""

import pathlib

import pytest

from repertory import launch
from support.environments import troubled_environments
from support.system import program


def _raise(error):
  raise error


@pytest.mark.chaos
@pytest.mark.parametrize('launch_type', ['local_mt', 'local_mp'])
def test_close_that_fails_does_not_lose_the_result(tmp_path, launch_type):
  factory = troubled_environments.Troubled(
    2, 'close', lambda: _raise(OSError('stuck'))
  )
  experiment = troubled_environments.make_experiment(tmp_path, factory)
  result = launch.run(experiment, 'distributed', launch_type, display=False)
  assert result.status.steps == 600
  assert result.status.evaluation_return is not None
  assert ' could not be closed: OSError: stuck' in result.status.message


_HANGING = """
import pathlib, sys, time
from repertory import launch
sys.path.insert(0, {tests!r})
from support.environments import troubled_environments

if __name__ == '__main__':
  factory = troubled_environments.Troubled(
    2, 'close', lambda: time.sleep(10**6))
  experiment = troubled_environments.make_experiment(
    pathlib.Path('.'), factory, stall_seconds=4)
  result = launch.run(experiment, 'distributed', {launch_type!r}, display=False)
  print('RESULT', result.status.steps, result.status.message)
"""


@pytest.mark.chaos
@pytest.mark.parametrize(
  'launch_type',
  ['local_mt', 'local_mp'],
)
def test_close_that_hangs_does_not_lose_the_result(tmp_path, launch_type):
  script = tmp_path / 'hanging.py'
  tests = str(pathlib.Path(__file__).parents[1])
  script.write_text(_HANGING.format(tests=tests, launch_type=launch_type))
  ended = program.Program([str(script)], str(tmp_path)).wait(120)
  assert ended.code == 0, ended.output
  assert 'RESULT 600' in ended.output
  assert ' could not be closed: It did not end' in ended.output
  assert ended.left == []
