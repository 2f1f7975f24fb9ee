"""Tests of resuming runs from checkpoints."""

import errno
import fcntl
import os
import re
import shutil

import numpy as np
import pytest

from repertory import launch
from repertory.components.checkpoints import checkpointing
from repertory.components.runtime import versions
from repertory.launch.experiments import directories
from repertory.launch.experiments import session as session_lib
from repertory.launch.topologies import central, distributed, single
from support.launch import log_files, sessions
from support.system import stacks

# XLA would take most of the time.
_SETTINGS = {
  'min_replay_size': 100, 'hidden_sizes': (32,), 'jit_compile': False
}  # fmt: skip
_QUEUE = {'batch_size': 4, 'unroll_length': 5, 'jit_compile': False}


def _experiment(directory, max_steps, config=None, **settings):
  return launch.make_experiment(
    'dqn',
    'catch',
    max_steps=max_steps,
    directory=str(directory),
    config={**_SETTINGS, **(config or {})},
    evaluation_episodes=0,
    **settings,
  )


def _run(*arguments, fresh=False, **settings) -> launch.Result:
  return launch.run(
    _experiment(*arguments, **settings), fresh=fresh, display=False
  )


def _rewrite_transport(directory, kind):
  """Replaces the kind of transport in the newest checkpoint."""
  checkpointer = checkpointing.Checkpointer(str(directory / 'checkpoints'))
  checkpoint = checkpointer.load()
  state = {**checkpoint.state, 'transport': kind}
  if kind is None:
    del state['transport']
  checkpointer.save(checkpoint.arrays, state, checkpoint.replay_path)


@pytest.fixture(scope='module', name='runs')
def _runs(tmp_path_factory):
  """Caches directories of runs by their steps; each is run on demand."""
  root, begun = tmp_path_factory.mktemp('runs'), set()

  def find(max_steps):
    directory = root / str(max_steps)
    if max_steps not in begun:
      _run(directory, max_steps)
      begun.add(max_steps)
    return directory

  return find


@pytest.fixture(name='have_run')
def _have_run(runs, tmp_path):
  """Copies a run of a number of steps to the folder of the test."""

  def have(max_steps):
    shutil.copytree(runs(max_steps), tmp_path, dirs_exist_ok=True)

  return have


class TestResume:
  def test_resumes_where_it_was(self, tmp_path, have_run):
    have_run(450)
    checkpoint = directories.load_checkpoint(str(tmp_path))
    second = _run(tmp_path, 900).status
    assert second.steps == 900
    assert second.episodes == 100
    # Replay was restored: 450 + 450 items, all episodes being complete.
    assert second.tables[0].size == 900
    # (900 − 100) × 16 samples are due in batches of 32: 400. At most three
    # batches, prefetched when the checkpoint was written, are lost.
    assert 397 <= second.learner_steps <= 400
    counts = checkpoint.state['counts']
    assert counts['steps'] == 450
    # (450 − 100) × 16 / 32 = 175.
    assert 172 <= counts['learner_steps'] <= 175
    rows = log_files.rows(tmp_path, 'replay')
    assert rows[-1]['samples'] == pytest.approx(800 * 16, rel=0.05)

  def test_learner_state_is_restored_bit_for_bit(self, tmp_path, have_run):
    have_run(900)
    before = directories.load_checkpoint(str(tmp_path)).arrays
    # No step is left; the same state is written again.
    _run(tmp_path, 900)
    after = directories.load_checkpoint(str(tmp_path)).arrays
    assert before.keys() == after.keys()
    for name in before:
      np.testing.assert_array_equal(before[name], after[name], err_msg=name)

  @pytest.mark.chaos
  def test_without_replay_starts_with_empty_tables(self, tmp_path):
    _run(tmp_path, 900, checkpoint_replay=False)
    status = _run(tmp_path, 1350, checkpoint_replay=False).status
    assert status.tables[0].size == 450
    assert status.steps == 1350

  def test_may_change_topology(self, tmp_path, have_run):
    have_run(450)
    experiment = _experiment(tmp_path, 900)
    # Reverb cannot read the table of single, but our server can.
    if versions.has_reverb():
      with sessions.open_session(
        experiment, distributed.Distributed(replay='reverb')
      ) as session:
        assert (
          'but with empty replay tables: those of the checkpoint are in the '
          'format of another replay' in session.message
        )
    status = launch.run(experiment, 'distributed', display=False).status
    assert status.steps == status.tables[0].inserts == 900
    assert 'empty' not in status.message
    status = _run(tmp_path, 1350).status
    assert status.steps == status.tables[0].inserts == 1350

  @pytest.mark.chaos
  def test_queue_is_left_out_if_environments_are_divided_otherwise(
    self, tmp_path
  ):
    stacks.require_reverb()

    def experiment(num_actors, environments_per_actor, max_steps=900):
      return launch.make_experiment(
        'impala',
        'catch',
        max_steps=max_steps,
        directory=str(tmp_path),
        config=_QUEUE,
        evaluation_episodes=0,
        num_actors=num_actors,
        environments_per_actor=environments_per_actor,
      )

    topology = single.Single(replay='reverb')
    launch.run(experiment(1, 4, max_steps=630), topology, display=False)
    for division, double_buffering, bundle_size, is_empty in (
      ((1, 4), False, 4, False),
      ((1, 4), True, 2, True),
      ((2, 2), False, 2, True),
    ):
      topology = central.Central(double_buffering=double_buffering)
      with sessions.open_session(experiment(*division), topology) as session:
        assert session.tables[0].bundle_size == bundle_size
        assert ('with empty replay tables' in session.message) == is_empty
        found = os.listdir(session.replay_directory)
        assert found == ([] if is_empty else ['0-restored'])
    # It continues with the server, which has written the tables.
    status = launch.run(experiment(1, 4), 'single', display=False).status
    assert status.steps == 900

  @pytest.mark.parametrize(
    ('written_by', 'kinds', 'kept'),
    [
      ('local', ['reverb', 'local'], 'local'),
      (None, ['local', 'reverb'], 'reverb'),
    ],
  )
  def test_tables_need_the_transport_that_wrote_them(
    self, written_by, kinds, kept, tmp_path, have_run, monkeypatch
  ):
    have_run(450)
    _rewrite_transport(tmp_path, written_by)
    experiment = _experiment(tmp_path, 900)
    topology = single.Single()
    monkeypatch.setattr(single.Single, 'transports', lambda *unused: kinds)
    with sessions.open_session(experiment, topology) as session:
      assert session.transport == kept
      assert session.message == 'resumed from checkpoint 00000002'
      assert os.listdir(session.replay_directory) == ['0-restored']

  def test_queue_without_a_server_has_no_bundles(self, tmp_path):
    experiment = launch.make_experiment(
      'impala',
      'catch',
      max_steps=640,
      directory=str(tmp_path),
      config=_QUEUE,
      environments_per_actor=4,
    )
    with sessions.open_session(experiment, topology='single') as session:
      assert session.tables[0].bundle_size == 1
    with sessions.open_session(experiment) as session:
      bundles = 4 if versions.has_reverb() else 1
      assert session.tables[0].bundle_size == bundles

  @pytest.mark.chaos
  def test_fresh_moves_the_old_one_aside(self, tmp_path):
    directory = tmp_path / 'run'
    _run(directory, 450)
    status = _run(directory, 108, fresh=True).status
    assert status.steps == 108
    old = [path for path in tmp_path.iterdir() if path != directory]
    assert len(old) == 1
    assert (
      directories.load_checkpoint(str(old[0])).state['counts']['steps'] == 450
    )

  def test_other_experiment_is_refused_with_its_fields(
    self, tmp_path, have_run
  ):
    have_run(108)
    with pytest.raises(checkpointing.CheckpointError) as error:
      _run(tmp_path, 180, {'n_step': 5, 'learning_rate': 0.5})
    message = str(error.value)
    assert 'config.n_step: 3 in the checkpoint, 5 now' in message
    assert 'config.learning_rate: 0.001 in the checkpoint, 0.5 now' in message
    assert 'batch_size' not in message
    with pytest.raises(
      checkpointing.CheckpointError, match=r'seed: 0 .* 7 now'
    ):
      _run(tmp_path, 180, seed=7)


class TestTwoStarts:
  def test_the_checkpoint_is_read_by_who_has_the_directory(self, tmp_path):
    """Other readers could see it change, or damage that is being repaired."""
    experiment = _experiment(tmp_path, 108)
    with sessions.open_session(experiment):
      checkpoint = tmp_path / 'checkpoints' / '00000001'
      checkpoint.mkdir()
      with (
        pytest.raises(ValueError, match='in use'),
        sessions.open_session(experiment),
      ):
        pass
    with (
      pytest.raises(checkpointing.CheckpointError),
      sessions.open_session(experiment),
    ):
      pass

  def test_a_directory_that_is_moved_aside_is_not_held(
    self, tmp_path, monkeypatch
  ):
    """Another start may move it between opening the lock and locking it."""
    directory = tmp_path / 'run'
    directory.mkdir()
    flock = fcntl.flock

    def overtake(file, operation):
      directory.rename(tmp_path / 'aside')
      directory.mkdir()
      (directory / '.lock').touch()
      flock(file, operation)

    monkeypatch.setattr(fcntl, 'flock', overtake)
    with (
      pytest.raises(ValueError, match='in use'),
      sessions.open_session(_experiment(directory, 108)),
    ):
      pass

  def test_a_file_system_without_locks(self, tmp_path, monkeypatch):
    def refuse(file, operation):
      raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, 'flock', refuse)
    with (
      pytest.raises(ValueError, match=r'^directory must'),
      sessions.open_session(_experiment(tmp_path, 108)),
    ):
      pass

  def test_leftovers_of_a_kill_are_removed_at_once(self, tmp_path):
    for name in ('.writing-00000002', '.removing-00000001', '.replay/2026'):
      (tmp_path / 'checkpoints' / name).mkdir(parents=True)
    with sessions.open_session(_experiment(tmp_path, 108)) as session:
      assert os.listdir(session.checkpoint_directory) == ['.replay']
      assert os.listdir(session.replay_directory) == []


@pytest.mark.parametrize(
  ('found', 'now', 'expected'),
  [
    (
      {'config.hidden_sizes': (128, 128)},
      {'config.hidden_sizes': (128, 64)},
      'config.hidden_sizes: (128, 128) in the checkpoint, (128, 64) now',
    ),
    (
      {},  # Of a version without this setting, which has its default.
      {'config.noise_correlation': 0.5},
      'config.noise_correlation: 0.0 in the checkpoint, 0.5 now',
    ),
    (
      {},
      {'config.n_step': 3},
      'config.n_step: nothing in the checkpoint, 3 now',
    ),
    (
      {'table.replay': 'max_size=5'},
      {'table.replay': 'max_size=6'},
      'experiment: table.replay: max_size=5 in the checkpoint, max_size=6 now.',
    ),
    (
      {'environment': 'a', 'table.a': 'x'},
      {'environment': 'b', 'table.b': 'y'},
      'experiment: environment: a in the checkpoint, b now.',
    ),
  ],
)
def test_differences_are_named(found, now, expected):
  checkpoint = checkpointing.Checkpoint('7', {}, {'experiment': found}, None)
  with pytest.raises(checkpointing.CheckpointError, match=re.escape(expected)):
    session_lib.check_identity(checkpoint, now)
