"""Tests of runs that resume from their storage, or refuse to."""

import errno
import os
import shutil
import time

import pytest

from repertory import launch
from repertory.components import checkpoints
from repertory.components.checkpoints import checkpointing, storage
from repertory.launch.cli import commands
from repertory.launch.experiments import directories
from repertory.launch.platform import watchdog
from support.launch import log_files, storage_runs

_quickly = storage_runs.quickly


@pytest.fixture(scope='module', name='once')
def _once(tmp_path_factory):
  """Directory and storage of a run of 450 steps."""
  folder = tmp_path_factory.mktemp('once')
  storage_runs.run(folder / 'a', folder / 'S', evaluation_episodes=2)
  return folder


@pytest.fixture(name='trained')
def _trained(once, tmp_path):
  """Copies of both, called `a` and `S`."""
  shutil.copytree(once, tmp_path, dirs_exist_ok=True)
  return tmp_path


class TestAnotherHost:
  def test_resumes_with_replay(self, tmp_path):
    """Two hosts share the storage only."""
    stored = f'memory://{tmp_path}/S'
    first = storage_runs.run(tmp_path / 'a', stored, 600).status
    shutil.rmtree(tmp_path / 'a')
    result = storage_runs.run(tmp_path / 'b', stored, 1_200)
    second = result.status
    assert (first.steps, second.steps) == (600, 1_200)
    assert result.not_stored == ''
    # 600 items of each host, all episodes (of 9 steps) but the last of the
    # first host being complete.
    assert 1_190 <= second.tables[0].size <= 1_200
    # (1,200 − 100) × 16 samples in batches of 32 are 550; at most three batches
    # that were prefetched are lost.
    assert 540 <= second.learner_steps <= 550
    # The message names the source.
    rows = log_files.nodes(tmp_path / 'b')
    (message,) = [row['message'] for row in rows if row['node'] == 'storage']
    assert message.startswith('checkpoint 00000001, of 600 steps and ')
    assert f'was fetched from {stored}/checkpoints/00000001-' in message
    assert 'resumed from checkpoint 00000001' in message
    assert storage_runs.counts(tmp_path / 'b')['runs'] == 2
    # Numbers continue, so both hosts use the same names.
    assert sorted(os.listdir(tmp_path / 'b' / 'checkpoints')) == [
      '.replay', '00000001', '00000002'
    ]  # fmt: skip

  @pytest.mark.chaos
  def test_what_is_here_is_kept_if_it_is_newer(self, trained):
    storage_runs.run(trained / 'a', None, 900)
    with storage_runs.opened(
      storage_runs.experiment(trained / 'a', trained / 'S', 901)
    ) as (_, session):
      assert session.message.startswith('resumed from checkpoint 00000002')

  @pytest.mark.chaos
  def test_what_is_older_here_gives_way(self, trained):
    storage_runs.run(trained / 'b', trained / 'S', 900)
    with storage_runs.opened(
      storage_runs.experiment(trained / 'a', trained / 'S', 901)
    ) as (_, session):
      assert session.message.startswith('checkpoint 00000002, of 900 steps')
    assert storage_runs.counts(trained / 'a')['runs'] == 2
    # Without one, it has the same number.
    with storage_runs.opened(
      storage_runs.experiment(trained / 'c', trained / 'S', 901)
    ):
      assert '00000002' in os.listdir(trained / 'c' / 'checkpoints')

  @pytest.mark.chaos
  def test_newest_and_best_are_kept(self, tmp_path):
    settings = {
      'evaluation_episodes': 2,
      'checkpoint_period_seconds': 0.1,
      'checkpoints_to_keep': 3,
    }
    stored = tmp_path / 'S'
    first = storage_runs.run(tmp_path / 'a', stored, 2_000, **settings)
    assert 1 < len(storage_runs.names(stored)) <= 3
    assert len(storage_runs.names(stored, 'best')) == 1
    assert sorted(os.listdir(stored)) == ['best', 'checkpoints']
    second = storage_runs.run(tmp_path / 'b', stored, 2_010, **settings)
    assert second.best is not None
    # It counts on another host, too, until there is a better one.
    kept = (
      directories.checkpoints_in(str(tmp_path / 'b'), best=True)
      .load()
      .state['evaluation']
    )
    assert kept['episode_return'] >= (first.status.best_return or 0.0)
    returns = launch.evaluate(
      storage_runs.experiment(tmp_path / 'b', stored), 2, best=True
    )
    assert len(returns) == 2

  @pytest.mark.chaos
  @pytest.mark.parametrize('difference', [-0.5, 0.0])
  def test_the_better_policy_of_both_counts(self, trained, difference):
    directory = trained / 'a'
    stored = (
      directories.checkpoints_in(str(directory), best=True)
      .load()
      .state['evaluation']
    )
    shutil.rmtree(directory / 'best')
    mine = {'episode_return': stored['episode_return'] + difference, 'steps': 7}
    state = directories.load_checkpoint(str(directory)).state
    checkpointing.Checkpointer(str(directory / 'best'), 1).save(
      {}, {**state, 'evaluation': mine}
    )
    with storage_runs.opened(storage_runs.experiment(directory, trained / 'S')):
      found = (
        directories.checkpoints_in(str(directory), best=True)
        .load()
        .state['evaluation']
      )
    assert found == (stored if difference < 0 else mine)


class TestRefusals:
  def check(self, tmp_path, directory, match, error=ValueError, **settings):
    before = _all(tmp_path)
    with pytest.raises(error, match=match):
      storage_runs.run(directory, tmp_path / 'S', 900, **settings)
    after = _all(tmp_path)
    assert after - before <= {directory.name, f'{directory.name}/.lock'}
    assert before <= after

  def test_another_experiment(self, trained):
    self.check(
      trained,
      trained / 'b',
      r'S/checkpoints/00000001-\w+ is of another experiment: config.n_step: 3',
      checkpointing.CheckpointError,
      config={'n_step': 5},
    )

  def test_damage_here_is_not_repaired_silently(self, trained):
    path = trained / 'a' / 'checkpoints' / '00000001' / 'arrays.npz'
    path.write_bytes(b'PK')
    self.check(
      trained,
      trained / 'a',
      r'a/checkpoints/00000001 cannot be read: arrays\.npz',
      checkpointing.CheckpointError,
    )
    shutil.rmtree(path.parent)  # As it says.
    with storage_runs.opened(
      storage_runs.experiment(trained / 'a', trained / 'S')
    ) as (_, session):
      assert 'was fetched' in session.message

  def test_a_damaged_best_does_not_count(self, trained):
    (name,) = storage_runs.names(trained / 'S', 'best')
    (trained / 'S' / 'best' / f'{name}.json').write_text('{')
    with storage_runs.opened(
      storage_runs.experiment(trained / 'b', trained / 'S')
    ) as (_, session):
      assert 'was fetched' in session.message
      assert 'the best policy was not fetched: Checkpoint' in session.message
      assert name in session.message

  def test_one_that_cannot_be_written(self, tmp_path, monkeypatch):
    # A TimeoutError: network file systems raise it.
    def refuse(self, name, content):
      raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), name)

    monkeypatch.setattr(checkpoints.StorageFolder, 'publish', refuse)
    message = f'^storage must .*{os.strerror(errno.ETIMEDOUT)}'
    self.check(tmp_path, tmp_path / 'b', message)

  def test_one_that_does_not_answer(self, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
      checkpoints.StorageFolder, 'names', lambda *arguments: time.sleep(60)
    )
    monkeypatch.setattr(watchdog, 'START_SECONDS', 1.0)
    arguments = [f'--directory={tmp_path}/a', f'--storage={tmp_path}/S']
    begun = time.monotonic()
    assert commands.run(['train', *arguments]) == 1
    assert time.monotonic() - begun < 30
    message = f'repertory: Waited 1 seconds for {tmp_path}/S to answer.'
    assert message in capsys.readouterr().err

  def test_one_in_use(self, tmp_path):
    with storage_runs.opened(
      storage_runs.experiment(tmp_path / 'a', tmp_path / 'S')
    ):
      self.check(
        tmp_path, tmp_path / 'b', '^storage must not be in use.*/a stores to'
      )

  @pytest.mark.parametrize(
    ('flag', 'message'),
    [
      ('--storage=', '--storage must be a path or URL'),
      ('--storage={}/run/S', "--storage must be apart from the run's"),
    ],
  )
  def test_from_the_command_line(self, tmp_path, flag, message, capsys):
    code = commands.run(
      ['train', f'--directory={tmp_path}/run', flag.format(tmp_path)]
    )
    assert code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / 'run').exists()


def _all(folder):
  """Returns all files, except those being written."""
  found = {str(path.relative_to(folder)) for path in folder.rglob('*')}
  return {name for name in found if not name.endswith(storage.UNFINISHED)}


class TestFresh:
  def test_moves_aside_what_is_stored(self, trained):
    stored = trained / 'S'
    names = storage_runs.names(stored), storage_runs.names(stored, 'best')
    result = storage_runs.run(trained / 'a', stored, 108, fresh=True)
    assert result.status.steps == 108
    (aside,) = stored.glob('aside-*')
    assert f'old checkpoints were moved to {aside}' in result.status.message
    assert (
      storage_runs.names(aside),
      storage_runs.names(aside, 'best'),
    ) == names
    assert len(storage_runs.names(stored)) == 1
    # It is a storage.
    with storage_runs.opened(storage_runs.experiment(trained / 'b', aside)) as (
      _,
      session,
    ):
      assert 'of 450 steps' in session.message

  def test_is_refused_if_that_cannot_be_done(self, trained, monkeypatch):
    def refuse(self, name, target):
      raise PermissionError(errno.EACCES, 'Permission denied', target)

    stored = trained / 'S'
    names = storage_runs.names(stored)
    monkeypatch.setattr(checkpoints.StorageFolder, 'move', refuse)
    with pytest.raises(ValueError, match=r'^storage must .*Permission denied'):
      storage_runs.run(trained / 'a', stored, fresh=True)
    assert storage_runs.names(stored) == names
    assert storage_runs.counts(trained / 'a')['steps'] == 450
