"""Tests of runs that keep their checkpoints elsewhere, too."""

import contextlib
import dataclasses
import errno
import json
import os
import shutil
import signal
import threading
import time

import pytest

import log_files
import storage_fixture
from repertory import launch
from repertory.components import checkpointing, loggers, storage
from repertory.components.storage import owner, places
from repertory.launch.commands import commands
from repertory.launch.runs import resuming, uploads

# XLA would take most of the time.
_SETTINGS = {
  'min_replay_size': 100, 'hidden_sizes': (32,), 'jit_compile': False
}  # fmt: skip


def _experiment(directory, stored, max_steps=450, config=None, **settings):
  return launch.make_experiment(
    'dqn',
    'catch',
    max_steps=max_steps,
    directory=str(directory),
    storage=None if stored is None else str(stored),
    config={**_SETTINGS, **(config or {})},
    **{'evaluation_episodes': 0, **settings},
  )


def _run(*arguments, fresh=False, **settings) -> launch.Result:
  return launch.run(
    _experiment(*arguments, **settings), fresh=fresh, display=False
  )


def _names(stored, folder='checkpoints'):
  shelf = storage.Shelf(places.LocalPlace(str(stored)), folder, folder)
  return shelf.names()


def _counts(directory):
  return resuming.load_checkpoint(str(directory)).state['counts']


def _warnings(directory):
  rows = log_files.nodes(directory)
  assert all(row['node'] == 'storage' for row in rows if 'warning' in row)
  return [row['warning'] for row in rows if 'warning' in row]


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
  monkeypatch.setattr(owner, '_BEAT_SECONDS', 0.1)
  monkeypatch.setattr(owner, '_WATCH_SECONDS', 0.5)
  monkeypatch.setattr(uploads, '_LOOK_SECONDS', 0.05)


@pytest.fixture(scope='module', name='once')
def _once(tmp_path_factory):
  """A run of 450 steps, as it left its directory and its storage."""
  folder = tmp_path_factory.mktemp('once')
  _run(folder / 'a', folder / 'S', evaluation_episodes=2)
  return folder


@pytest.fixture(name='trained')
def _trained(once, tmp_path):
  """Copies of these two, called `a` and `S`."""
  shutil.copytree(once, tmp_path, dirs_exist_ok=True)
  return tmp_path


class TestAnotherHost:
  @pytest.mark.parametrize('kind', ['path', 'memory'])
  def test_goes_on_with_replay(self, tmp_path, kind):
    """What two hosts have in common is the storage alone."""
    stored = tmp_path / 'S'
    if kind == 'memory':
      stored = f'memory://{stored}'
    first = _run(tmp_path / 'a', stored, 1_500).status
    shutil.rmtree(tmp_path / 'a')
    result = _run(tmp_path / 'b', stored, 3_000)
    second = result.status
    assert (first.steps, second.steps) == (1_500, 3_000)
    assert result.not_stored == ''
    # 1,500 items of each host, all episodes (of 9 steps) but the last of the
    # first host being complete.
    assert 2_990 <= second.tables[0].size <= 3_000
    # (3,000 − 100) × 16 samples in batches of 32 are 1,450; at most three
    # batches that were prefetched are lost.
    assert 1_440 <= second.learner_steps <= 1_450
    # It says from where.
    rows = log_files.nodes(tmp_path / 'b')
    (told,) = [row['message'] for row in rows if row['node'] == 'storage']
    assert told.startswith('checkpoint 00000001, of 1500 steps and ')
    assert f'was fetched from {stored}/checkpoints/00000001-' in told
    assert 'resumed from checkpoint 00000001' in told
    assert _counts(tmp_path / 'b')['runs'] == 2
    # Numbers go on, so both hosts speak of the same by the same name.
    assert sorted(os.listdir(tmp_path / 'b' / 'checkpoints')) == [
      '.replay', '00000001', '00000002'
    ]  # fmt: skip

  @pytest.mark.parametrize(
    'topology', ['distributed', 'central', 'anakin', 'sebulba']
  )
  def test_in_other_topologies(self, tmp_path, topology):
    environment = 'tensor:catch' if topology == 'anakin' else 'catch'
    for directory, max_steps in (('a', 200), ('b', 400)):
      experiment = launch.make_experiment(
        'dqn',
        environment,
        max_steps=max_steps,
        directory=str(tmp_path / directory),
        storage=str(tmp_path / 'S'),
        config=_SETTINGS,
        evaluation_episodes=0,
      )
      result = launch.run(experiment, topology, display=False)
      assert result.not_stored == ''
    assert result.status.steps == 400
    assert 'was fetched from' in result.status.message
    assert _counts(tmp_path / 'b')['runs'] == 2
    assert len(_names(tmp_path / 'S')) == 2

  def test_what_is_here_is_kept_if_it_is_as_new(self, trained):
    with _open(_experiment(trained / 'a', trained / 'S')) as (_, session):
      assert session.message.startswith('resumed from checkpoint 00000001')
    assert sorted(os.listdir(trained / 'a' / 'checkpoints')) == [
      '.replay', '00000001'
    ]  # fmt: skip

  def test_what_is_here_is_kept_if_it_is_newer(self, trained):
    _run(trained / 'a', None, 900)
    with _open(_experiment(trained / 'a', trained / 'S', 901)) as (_, session):
      assert session.message == 'resumed from checkpoint 00000002'

  def test_what_is_older_here_gives_way(self, trained):
    _run(trained / 'b', trained / 'S', 900)
    with _open(_experiment(trained / 'a', trained / 'S', 901)) as (_, session):
      assert session.message.startswith('checkpoint 00000002, of 900 steps')
    assert _counts(trained / 'a')['runs'] == 2
    # Where there is none it has the same number.
    with _open(_experiment(trained / 'c', trained / 'S', 901)):
      assert '00000002' in os.listdir(trained / 'c' / 'checkpoints')

  def test_newest_and_best_are_kept(self, tmp_path):
    settings = {
      'evaluation_episodes': 2,
      'checkpoint_period_seconds': 0.1,
      'checkpoints_to_keep': 3,
    }
    stored = tmp_path / 'S'
    first = _run(tmp_path / 'a', stored, 4_000, **settings)
    assert 1 < len(_names(stored)) <= 3
    assert len(_names(stored, 'best')) == 1
    assert sorted(os.listdir(stored)) == ['best', 'checkpoints']
    second = _run(tmp_path / 'b', stored, 4_010, **settings)
    assert second.best is not None
    # It counts on another host as well, until there is a better one.
    kept = resuming.load_best(str(tmp_path / 'b')).state['evaluation']
    assert kept['episode_return'] >= (first.status.best_return or 0.0)
    returns = launch.evaluate(_experiment(tmp_path / 'b', stored), 2, best=True)
    assert len(returns) == 2

  @pytest.mark.parametrize('difference', [-0.5, 0.0, 0.5])
  def test_the_better_policy_of_both_counts(self, trained, difference):
    directory = trained / 'a'
    stored = resuming.load_best(str(directory)).state['evaluation']
    shutil.rmtree(directory / 'best')
    mine = {'episode_return': stored['episode_return'] + difference, 'steps': 7}
    state = resuming.load_checkpoint(str(directory)).state
    checkpointing.Checkpointer(str(directory / 'best'), 1).save(
      {}, {**state, 'evaluation': mine}
    )
    with _open(_experiment(directory, trained / 'S')):
      found = resuming.load_best(str(directory)).state['evaluation']
    assert found == (stored if difference < 0 else mine)


@contextlib.contextmanager
def _open(experiment, fresh=False):
  stored = storage.open_storage(experiment.storage, experiment.directory)
  with resuming.open_session(experiment, fresh, stored=stored) as session:
    yield stored, session


class TestRefusals:
  def check(self, tmp_path, directory, match, error=ValueError, **settings):
    before = _all(tmp_path)
    with pytest.raises(error, match=match):
      _run(directory, tmp_path / 'S', 900, **settings)
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

  def test_another_experiment_here(self, trained):
    """Nothing of the storage may take its place."""
    _run(trained / 'b', None, 108, seed=7)
    self.check(
      trained,
      trained / 'b',
      'b/checkpoints/00000001 is of another experiment: seed: 7',
      checkpointing.CheckpointError,
    )

  def test_damage(self, trained):
    (name,) = _names(trained / 'S')
    path = trained / 'S' / 'checkpoints' / name / 'arrays.npz'
    path.write_bytes(path.read_bytes()[:-1] + b'?')
    for _ in range(2):
      with pytest.raises(
        checkpointing.CheckpointError, match=rf'{name} .*arrays.npz was damaged'
      ):
        _run(trained / 'b', trained / 'S', 900)
    assert path.exists()
    assert os.listdir(trained / 'b' / 'checkpoints') == []

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
    with _open(_experiment(trained / 'a', trained / 'S')) as (_, session):
      assert 'was fetched' in session.message

  def test_a_damaged_best_does_not_count(self, trained):
    (name,) = _names(trained / 'S', 'best')
    (trained / 'S' / 'best' / f'{name}.json').write_text('{')
    with _open(_experiment(trained / 'b', trained / 'S')) as (_, session):
      assert 'was fetched' in session.message
      assert 'the best policy was not fetched: Checkpoint' in session.message
      assert name in session.message

  def test_a_file_in_its_place(self, tmp_path):
    (tmp_path / 'S').write_text('mine')
    self.check(tmp_path, tmp_path / 'b', '^storage must be a place to write')

  def test_one_that_cannot_be_written(self, tmp_path, monkeypatch):
    def refuse(self, name, content):
      raise PermissionError(errno.EACCES, 'Permission denied', name)

    monkeypatch.setattr(places.LocalPlace, 'publish', refuse)
    self.check(tmp_path, tmp_path / 'b', '^storage must .*Permission denied')

  def test_one_in_use(self, tmp_path):
    with _open(_experiment(tmp_path / 'a', tmp_path / 'S')):
      self.check(
        tmp_path, tmp_path / 'b', '^storage must not be in use.*/a stores to'
      )

  @pytest.mark.parametrize('value', ['', 7])
  def test_a_value_that_is_none(self, tmp_path, value):
    with pytest.raises(ValueError, match='storage must be a path or URL'):
      dataclasses.replace(_experiment(tmp_path, 'S'), storage=value)

  @pytest.mark.parametrize(
    ('flag', 'told'),
    [
      ('--storage=', '--storage must be a path or URL'),
      ('--storage={}/run/S', "--storage must be apart from the run's"),
      ('--storage=nonsense://x', 'Protocol not known: nonsense'),
    ],
  )
  def test_from_the_command_line(self, tmp_path, flag, told, capsys):
    code = commands.run(
      ['train', f'--directory={tmp_path}/run', flag.format(tmp_path)]
    )
    assert code == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / 'run').exists()


def _all(folder):
  """Returns all there is, but what is written at this moment."""
  found = {str(path.relative_to(folder)) for path in folder.rglob('*')}
  return {name for name in found if not name.endswith(places.UNFINISHED)}


def test_storage_is_not_part_of_what_an_experiment_is(trained):
  assert _run(trained / 'a', trained / 'T', 900).not_stored == ''
  assert len(_names(trained / 'S')) == 1
  # The one that it began with has been stored, too, if there was time for it.
  assert _names(trained / 'T')[-1].startswith('00000002')


class TestFresh:
  def test_moves_aside_what_is_stored(self, trained):
    stored = trained / 'S'
    names = _names(stored), _names(stored, 'best')
    result = _run(trained / 'a', stored, 108, fresh=True)
    assert result.status.steps == 108
    (aside,) = stored.glob('aside-*')
    assert f'what was stored is now in {aside}' in result.status.message
    assert (_names(aside), _names(aside, 'best')) == names
    assert len(_names(stored)) == 1
    # It is a storage.
    with _open(_experiment(trained / 'b', aside)) as (_, session):
      assert 'of 450 steps' in session.message

  def test_another_experiment_too(self, trained):
    stored = trained / 'S'
    _run(trained / 'b', stored, 108, {'n_step': 5}, fresh=True)
    assert len(_names(stored)) == 1
    assert len(list(stored.glob('aside-*'))) == 1

  def test_is_refused_if_that_cannot_be_done(self, trained, monkeypatch):
    def refuse(self, name, target):
      raise PermissionError(errno.EACCES, 'Permission denied', target)

    stored = trained / 'S'
    names = _names(stored)
    monkeypatch.setattr(places.LocalPlace, 'copy', refuse)
    with pytest.raises(ValueError, match=r'^storage must .*Permission denied'):
      _run(trained / 'a', stored, fresh=True)
    assert _names(stored) == names
    assert _counts(trained / 'a')['steps'] == 450

  def test_where_nothing_is_stored_nothing_is_moved(self, tmp_path):
    _run(tmp_path / 'a', tmp_path / 'S', 108, fresh=True)
    assert os.listdir(tmp_path / 'S') == ['checkpoints']


class TestFailures:
  @pytest.fixture(name='broken')
  def _broken(self, monkeypatch):
    """Fails while it is set, but not at the start, when it is looked at."""
    event, write = threading.Event(), places.LocalPlace.write

    def fail(self, name, chunks):
      if event.is_set():
        raise OSError(errno.ENOSPC, 'No space left on device', name)
      write(self, name, chunks)

    event.set()
    monkeypatch.setattr(places.LocalPlace, 'write', fail)
    return event

  def test_a_run_goes_on_and_tells(self, tmp_path, broken):
    stored, directory = tmp_path / 'S', tmp_path / 'a'
    result = _run(directory, stored, 4_000, checkpoint_period_seconds=0.1)
    assert result.status.steps == 4_000
    assert 'No space left' in result.not_stored
    assert 'checkpoint 0000' in result.not_stored
    assert result.not_stored in result.status.message
    # It was tried with more than one of them.
    warnings = _warnings(directory)
    assert len(warnings) >= 2
    assert result.not_stored == warnings[-1]
    assert len({warning.split()[1] for warning in warnings}) >= 2
    assert _names(stored) == []
    # The same command stores it.
    broken.clear()
    assert _run(directory, stored, 4_000).not_stored == ''
    assert 'fetched' in _run(tmp_path / 'b', stored, 4_100).status.message

  def test_one_that_passes_is_forgotten(self, tmp_path, broken, monkeypatch):
    warn = uploads.Uploads._warn

    def repair(self, problem):
      broken.clear()
      warn(self, problem)

    monkeypatch.setattr(uploads.Uploads, '_warn', repair)
    result = _run(
      tmp_path / 'a', tmp_path / 'S', 4_000, checkpoint_period_seconds=0.1
    )
    assert result.not_stored == ''
    assert 'No space' not in result.status.message
    assert len(_warnings(tmp_path / 'a')) == 1

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
    told = capsys.readouterr().err
    assert 'repertory: checkpoint 00000001 is not in' in told
    assert 'No space left' in told
    assert 'The same command stores it.' in told
    broken.clear()
    assert commands.run(arguments) == 0

  def test_a_failed_run_is_stored(self, tmp_path):
    experiment = dataclasses.replace(
      _experiment(tmp_path / 'a', tmp_path / 'S', 900),
      environment_factory=_Failing(300),
    )
    with pytest.raises(launch.NodeError, match='It broke'):
      launch.run(experiment, display=False)
    assert _names(tmp_path / 'S')
    status = _run(tmp_path / 'b', tmp_path / 'S', 900).status
    assert status.steps == 900
    assert 'was fetched' in status.message

  def test_another_run_takes_the_storage(self, tmp_path, monkeypatch):
    experiment = _experiment(
      tmp_path / 'a', tmp_path / 'S', 100_000, checkpoint_period_seconds=0.2
    )
    run = launch.running.session_lib.Session.make_checkpointer

    def overtake(self):
      content = {'token': 'x', 'host': 'h', 'process': 7, 'directory': 'd'}
      places.LocalPlace(str(tmp_path / 'S')).publish(
        'owner.json', json.dumps(content).encode()
      )
      return run(self)

    monkeypatch.setattr(
      launch.running.session_lib.Session, 'make_checkpointer', overtake
    )
    result = launch.run(
      dataclasses.replace(experiment, max_steps=900), display=False
    )
    assert 'process 7 on host h, in d has taken' in result.not_stored
    assert _names(tmp_path / 'S') == []
    assert json.loads((tmp_path / 'S' / 'owner.json').read_text())['token']


@dataclasses.dataclass(frozen=True)
class _Failing:
  """Makes environments that fail after so many steps."""

  num_steps: int

  def __call__(self, seed):
    make = _experiment('unused', None).environment_factory
    environment = make(seed)
    step, calls = environment.step, []

    def fail(action):
      calls.append(action)
      if len(calls) > self.num_steps:
        raise RuntimeError('It broke.')
      return step(action)

    environment.step = fail
    return environment


class _Blocked:
  """Lets storing wait at a file until it is released."""

  def __init__(self, monkeypatch):
    self.begun, self.released = threading.Event(), threading.Event()
    write = places.LocalPlace.write

    def wait(place, name, chunks):
      self.begun.set()
      assert self.released.wait(30)
      write(place, name, chunks)

    monkeypatch.setattr(places.LocalPlace, 'write', wait)


class TestUploads:
  @pytest.fixture(name='blocked')
  def _blocked(self, monkeypatch):
    blocked = _Blocked(monkeypatch)
    yield blocked
    blocked.released.set()

  @contextlib.contextmanager
  def start(self, tmp_path, shown=None, **settings):
    experiment = _experiment(tmp_path / 'a', tmp_path / 'S', **settings)
    take = (lambda status: None) if shown is None else shown.append
    with (
      _open(experiment) as (stored, session),
      uploads.Uploads(stored, session, take) as storing,
    ):
      yield storing

  def write(self, tmp_path, value):
    return storage_fixture.write_checkpoint(
      tmp_path / 'a' / 'checkpoints', value
    )

  def test_what_is_removed_meanwhile_is_stored(self, tmp_path, blocked):
    with self.start(tmp_path) as storing:
      path = self.write(tmp_path, 1)
      assert blocked.begun.wait(30)
      shutil.rmtree(path)
      assert os.listdir(tmp_path / 'a' / '.storing')
      blocked.released.set()
      assert storing.finish() == ''
    shelf = storage.Shelf(
      places.LocalPlace(str(tmp_path / 'S')), 'checkpoints', ''
    )
    assert storage_fixture.fetch(shelf, tmp_path / 'b') == 1
    assert not (tmp_path / 'a' / '.storing').exists()

  def test_the_end_stores_the_newest(self, tmp_path, blocked):
    """Also if an older one was on its way."""
    with self.start(tmp_path) as storing:
      self.write(tmp_path, 1)
      assert blocked.begun.wait(30)
      self.write(tmp_path, 2)
      blocked.released.set()
      assert storing.finish() == ''
    assert [name[:8] for name in _names(tmp_path / 'S')] == [
      '00000001', '00000002'
    ]  # fmt: skip

  def test_the_end_waits_for_a_time_and_says_for_what(self, tmp_path, blocked):
    shown, begun = [], time.monotonic()
    with self.start(tmp_path, shown, timeout_seconds=1.0) as storing:
      storing.show(loggers.Status(title='t', steps=0, max_steps=1))
      self.write(tmp_path, 1)
      problem = storing.finish()
    assert time.monotonic() - begun < 10
    assert problem.startswith(
      'Waited 1 seconds at the end of the run for checkpoint 00000001 to be '
      f'stored in {tmp_path}/S, of which 0.0 of 0.0 MB are'
    )
    assert 'checkpoint 00000001 to be stored' in shown[-1].message
    assert _warnings(tmp_path / 'a') == [problem]
    blocked.released.set()
    assert _wait_until_ended()
    # It was given up: nothing is completed behind anybody's back.
    assert _names(tmp_path / 'S') == []

  def test_a_second_interrupt_ends_the_wait(self, tmp_path, blocked):
    begun = time.monotonic()
    with (
      pytest.raises(KeyboardInterrupt),
      self.start(tmp_path, timeout_seconds=1e6) as storing,
    ):
      self.write(tmp_path, 1)
      assert blocked.begun.wait(30)
      main = threading.main_thread().ident
      threading.Timer(0.5, lambda: _interrupt(main)).start()
      storing.finish()
    assert time.monotonic() - begun < 20
    blocked.released.set()
    assert _wait_until_ended()
    assert _names(tmp_path / 'S') == []

  def test_the_end_tries_again_what_could_not_be_stored(
    self, tmp_path, monkeypatch
  ):
    def fail(self, name, chunks):
      raise OSError(errno.ENOSPC, 'No space left on device', name)

    with self.start(tmp_path) as storing:
      with monkeypatch.context() as patch:
        patch.setattr(places.LocalPlace, 'write', fail)
        self.write(tmp_path, 1)
        _wait_for(lambda: _warnings(tmp_path / 'a'))
        time.sleep(0.2)  # It is not tried over and over.
        assert len(_warnings(tmp_path / 'a')) == 1
      assert storing.finish() == ''
    assert len(_names(tmp_path / 'S')) == 1

  def test_so_many_are_kept_as_in_the_directory(self, tmp_path):
    stored = tmp_path / 'S'
    with self.start(tmp_path, checkpoints_to_keep=2) as storing:
      for value in (1, 2, 3):
        self.write(tmp_path, value)
        _wait_for(lambda n=value: _names(stored)[-1:] > [f'{n:08d}'])
      assert storing.finish() == ''
    assert [n[:8] for n in _names(stored)] == ['00000002', '00000003']

  def test_a_failure_waits_for_the_newest(self, tmp_path):
    with (
      pytest.raises(RuntimeError, match='of the run'),
      self.start(tmp_path),
    ):
      self.write(tmp_path, 1)
      raise RuntimeError('of the run')
    assert len(_names(tmp_path / 'S')) == 1

  def test_links_of_a_killed_run_are_removed(self, tmp_path):
    (tmp_path / 'a' / '.storing' / 'x').mkdir(parents=True)
    with self.start(tmp_path) as storing:
      assert not (tmp_path / 'a' / '.storing').exists()
      storing.finish()

  def test_what_a_killed_run_did_not_finish_is_removed(self, tmp_path):
    part = tmp_path / 'S' / 'checkpoints' / '00000001-01234567'
    part.mkdir(parents=True)
    (part / 'arrays.npz').write_text('half')
    with self.start(tmp_path) as storing:
      assert not part.exists()
      storing.finish()

  def test_an_old_best_of_a_run_that_starts_anew_is_not_stored(self, tmp_path):
    storage_fixture.write_checkpoint(tmp_path / 'a' / 'best', 1, evaluation=9.0)
    with self.start(tmp_path) as storing:
      assert storing.finish() == ''
    assert _names(tmp_path / 'S', 'best') == []

  def test_what_cannot_be_removed_there_is_told(self, tmp_path, monkeypatch):
    def refuse(self, name):
      raise PermissionError(errno.EACCES, 'Permission denied', name)

    with self.start(tmp_path, checkpoints_to_keep=1) as storing:
      self.write(tmp_path, 1)
      _wait_for(lambda: _names(tmp_path / 'S'))
      monkeypatch.setattr(places.LocalPlace, 'remove', refuse)
      self.write(tmp_path, 2)
      assert storing.finish() == ''
    assert len(_names(tmp_path / 'S')) == 2
    (warning,) = _warnings(tmp_path / 'a')
    assert 'older than checkpoint 00000002 could not be removed' in warning


def _wait_for(condition):
  deadline = time.monotonic() + 30
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.01)


def _interrupt(thread):
  signal.pthread_kill(thread, signal.SIGINT)


def _wait_until_ended():
  _wait_for(lambda: all(t.name != 'storage' for t in threading.enumerate()))
  return True


def test_no_thread_is_left(tmp_path):
  before = set(threading.enumerate())
  _run(tmp_path / 'a', tmp_path / 'S', 108)
  left = [t.name for t in set(threading.enumerate()) - before]
  assert not [name for name in left if name.startswith('storage')]
