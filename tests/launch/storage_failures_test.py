"""Tests of failing runs and failing storages."""

import dataclasses
import errno
import json
import threading

import pytest

from repertory import launch
from repertory.components import checkpoints
from repertory.launch.cli import commands
from support.environments import troubled_environments
from support.launch import storage_runs

_quickly = storage_runs.quickly


def _fail():
  raise RuntimeError('It broke.')


class TestFailures:
  @pytest.fixture(name='broken')
  def _broken(self, monkeypatch):
    """Fails while it is set, but not in the check at the start."""
    event, write = threading.Event(), checkpoints.StorageFolder.upload

    def fail(self, path, name):
      if event.is_set():
        raise OSError(errno.ENOSPC, 'No space left on device', name)
      write(self, path, name)

    event.set()
    monkeypatch.setattr(checkpoints.StorageFolder, 'upload', fail)
    return event

  @pytest.mark.chaos
  def test_a_run_continues_and_reports(self, tmp_path, broken):
    stored, directory = tmp_path / 'S', tmp_path / 'a'
    result = storage_runs.run(
      directory, stored, 4_000, checkpoint_period_seconds=0.1
    )
    assert result.status.steps == 4_000
    assert 'No space left' in result.not_stored
    assert 'checkpoint 0000' in result.not_stored
    problem, advice = result.not_stored.rsplit('. ', 1)
    assert problem in result.status.message
    assert advice == 'The same command stores it.'
    # More than one checkpoint was tried.
    warnings = storage_runs.warnings(directory)
    assert len(warnings) >= 2
    assert problem == warnings[-1]
    assert len({warning.split()[1] for warning in warnings}) >= 2
    assert storage_runs.names(stored) == []
    # The same command stores it.
    broken.clear()
    assert storage_runs.run(directory, stored, 4_000).not_stored == ''
    assert (
      'fetched'
      in storage_runs.run(tmp_path / 'b', stored, 4_100).status.message
    )

  @pytest.mark.chaos
  def test_exit_code(self, tmp_path, broken, capsys):
    arguments = [
      'train',
      '--steps=300',
      '--config.jit_compile=false',
      '--evaluation_episodes=0',
      f'--directory={tmp_path}/a',
      f'--storage={tmp_path}/S',
    ]
    assert commands.run(arguments) == 3
    printed = capsys.readouterr().err
    assert 'repertory: checkpoint 00000001 is not in' in printed
    assert 'No space left' in printed
    assert 'The same command stores it.' in printed
    broken.clear()
    assert commands.run(arguments) == 0

  def test_a_failed_run_is_stored(self, tmp_path):
    experiment = dataclasses.replace(
      storage_runs.experiment(tmp_path / 'a', tmp_path / 'S', 900),
      environment_factory=troubled_environments.Troubled(2, 'step', _fail),
    )
    with pytest.raises(launch.NodeError, match='It broke'):
      launch.run(experiment, display=False)
    assert storage_runs.names(tmp_path / 'S')
    status = storage_runs.run(tmp_path / 'b', tmp_path / 'S', 900).status
    assert status.steps == 900
    assert 'was fetched' in status.message

  @pytest.mark.chaos
  def test_another_run_takes_the_storage(self, tmp_path, monkeypatch):
    experiment = storage_runs.experiment(
      tmp_path / 'a', tmp_path / 'S', 100_000, checkpoint_period_seconds=0.2
    )
    run = launch.opening.run.session_lib.Session.make_checkpointer

    def overtake(self):
      content = {'token': 'x', 'host': 'h', 'process': 7, 'directory': 'd'}
      checkpoints.StorageFolder(str(tmp_path / 'S')).publish(
        'owner.json', json.dumps(content).encode()
      )
      return run(self)

    monkeypatch.setattr(
      launch.opening.run.session_lib.Session, 'make_checkpointer', overtake
    )
    result = launch.run(
      dataclasses.replace(experiment, max_steps=900), display=False
    )
    assert 'process 7 on host h, in d has taken' in result.not_stored
    # The same command would resume from that run's checkpoints.
    assert result.not_stored.endswith(
      'The same command with another storage stores it.'
    )
    assert storage_runs.names(tmp_path / 'S') == []
    assert json.loads((tmp_path / 'S' / 'owner.json').read_text())['token']
