"""Tests of actors that start more slowly than all time-outs."""

import time

import pytest

from repertory import launch
from repertory.agents import dqn
from repertory.environments.registry import registry
from support.launch import log_files

_TIMEOUT_SECONDS = 6
_START_SECONDS = 15


class _Slow:
  """Makes Catch environments, slowly except for the first check."""

  def __init__(self, flag=None):
    """Makes no environments yet.

    Args:
      flag: A path; an environment that finds no file there after 300 steps
        creates it and raises.
    """
    self._flag = flag
    self._num_made = 0

  def __call__(self, seed):
    self._num_made += 1
    environment = registry.make('catch', seed)
    if self._num_made == 1:
      return environment
    time.sleep(_START_SECONDS)
    step, calls = environment.step, []

    def failing_step(action):
      calls.append(action)
      if self._flag and len(calls) == 300 and not self._flag.exists():
        self._flag.touch()
        raise OSError('once')
      return step(action)

    environment.step = failing_step
    return environment


def _run(folder, launch_type, factory, **config):
  experiment = launch.Experiment(
    dqn.DQNBuilder(dqn.DQNConfig(jit_compile=False, **config)),
    factory,
    max_steps=600,
    directory=str(folder / 'run'),
    evaluation_episodes=0,
    timeout_seconds=_TIMEOUT_SECONDS,
  )
  return launch.run(experiment, 'distributed', launch_type, display=False)


@pytest.mark.chaos
def test_learner_waits_for_the_first_item(tmp_path):
  result = _run(tmp_path, 'local_mt', _Slow())
  assert result.status.steps == 600
  assert result.status.learner_steps > 0


@pytest.mark.chaos
@pytest.mark.parametrize('min_size', [200, 400], ids=['batch', 'item'])
def test_learner_waits_for_an_actor_that_is_started_again(tmp_path, min_size):
  factory = _Slow(tmp_path / 'flag')
  result = _run(tmp_path, 'local_mp', factory, min_replay_size=min_size)
  assert result.status.steps == 600
  assert result.status.num_restarts == 1
  assert log_files.restarted(tmp_path / 'run') == ['actor/0']
