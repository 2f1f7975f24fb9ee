"""Fetches checkpoints from a run's storage, and uploads to it."""

import contextlib
import dataclasses
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator

from absl import logging

from repertory.components import checkpoints, loggers
from repertory.components.checkpoints import checkpointing
from repertory.components.config.settings import SettingError, text_of
from repertory.components.runtime import signals
from repertory.launch.experiments import directories
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.experiments import session as session_lib
from repertory.launch.platform import interrupts, watchdog

# Name of the node in `logs/nodes.jsonl`.
_NAME = 'storage'
_LOOK_SECONDS = 1.0
_SHOW_SECONDS = 0.25  # Period of progress reports at the end of the run.
_CLOSE_SECONDS = 2.0  # Time-out for the thread after an upload is canceled.

Check = Callable[[checkpointing.Checkpoint], None]


@contextlib.contextmanager
def holding(
  stored: 'checkpoints.Storage',
  experiment: experiment_lib.Experiment,
  fresh: bool,
  check: Check,
  report: Callable[[str], None],
) -> Iterator[str]:
  """Locks a run's storage, and yields what was done.

  Its newer checkpoints are fetched; with `fresh`, its contents are moved aside.
  `check` raises for a checkpoint of another experiment.
  """
  done = ''
  fetch = _Fetch(stored, experiment, check, report)
  with contextlib.ExitStack() as held:
    with fetch.watched():
      held.enter_context(stored.lock.hold(report))
      stored.remove_unfinished()
      if not fresh:
        done = fetch.run()
      elif aside := stored.move_aside():
        done = f'old checkpoints were moved to {aside}'
    yield done


@dataclasses.dataclass
class _Fetch:
  """Fetches the newest checkpoint and the best policy, if missing here."""

  stored: 'checkpoints.Storage'
  experiment: experiment_lib.Experiment
  check: Check
  report: Callable[[str], None]
  num_bytes: int = 0

  @contextlib.contextmanager
  def watched(self) -> Iterator[None]:
    """Raises NoAnswerError in a block in which no bytes arrive for long."""
    seconds = watchdog.START_SECONDS
    late = signals.NoAnswerError(
      f'Waited {seconds:g} seconds for {self.stored.shown} to answer.'
    )
    try:
      with (
        interrupts.interruptible() as demand,
        watchdog.watching(
          lambda: self.num_bytes, seconds, lambda waited: demand(late)
        ),
      ):
        yield
    except OSError as error:
      raise SettingError(
        'storage',
        f'must be readable and writable, got {self.stored.shown}: '
        f'{text_of(error)}.',
      ) from error

  def run(self) -> str:
    """Fetches what is missing; returns a description of what was done."""
    newest = self.stored.checkpoints.newest()
    if newest is None:
      return ''
    self._check_manifest(newest)
    done = []
    path = os.path.join(self.experiment.directory, directories.CHECKPOINTS)
    num_kept = self.experiment.checkpoints_to_keep
    here = checkpointing.Checkpointer(path, num_kept)
    mine = here.load(check_replay=False)
    if mine is not None:
      self.check(mine)
    counts = mine.state['counts'] if mine else None
    found = counts and (counts['learner_steps'], counts['steps'])
    if found is None or newest.progress > found:
      self._fetch(self.stored.checkpoints, newest, here)
      done.append(
        f'checkpoint {newest.number:08d}, of {newest.steps} steps and '
        f'{newest.learner_steps} updates, was fetched from {newest.path}'
      )
    try:
      self._fetch_best()
    except checkpointing.CheckpointError as error:  # Training does without.
      done.append(f'the best policy was not fetched: {error.problem}')
    return '; '.join(done)

  def _fetch_best(self) -> None:
    """Fetches the best policy, if that here is worse."""
    path = os.path.join(self.experiment.directory, directories.BEST)
    here = checkpointing.Checkpointer(path, 1)
    best = self.stored.best.newest()
    if best is None or best.episode_return is None:
      return
    self._check_manifest(best)
    mine = here.load()
    if mine is None or (
      mine.state['evaluation']['episode_return'] < best.episode_return
    ):
      self._fetch(self.stored.best, best, here)

  def _fetch(
    self,
    store: 'checkpoints.CheckpointStore',
    manifest: 'checkpoints.CheckpointManifest',
    here: checkpointing.Checkpointer,
  ) -> None:
    self.report(f'fetching {manifest.path}, {manifest.num_bytes / 1e6:.1f} MB')

    def count(num_bytes: int) -> None:
      self.num_bytes += num_bytes

    here.add(
      lambda folder: store.fetch(manifest, folder, count), manifest.number
    )

  def _check_manifest(self, manifest: 'checkpoints.CheckpointManifest') -> None:
    """Raises for a checkpoint of another experiment, before fetching it."""
    state = {'experiment': manifest.experiment}
    self.check(checkpointing.Checkpoint(manifest.path, {}, state, None))


@dataclasses.dataclass
class _Series:
  """Local checkpoints, whose newest one is uploaded to a store.

  `stored` is the last one uploaded, or one to skip; `failed` the last one that
  failed, to be tried again at the end; `problem` says why.
  """

  what: str
  store: 'checkpoints.CheckpointStore'
  checkpointer: checkpointing.Checkpointer
  max_to_keep: int
  stored: str | None = None
  failed: str | None = None
  problem: str = ''


class Uploads:
  """Uploads the newest checkpoint and best policy, in a thread of its own.

  A checkpoint is hard-linked first, so that training can remove it in the
  meantime. A failed upload is logged and the next checkpoint is tried; at the
  end of the run, the newest is tried again.
  """

  def __init__(
    self,
    stored: 'checkpoints.Storage',
    session: session_lib.Session,
    show: Callable[[loggers.Status], None],
  ):
    """Starts the thread; the run must have locked the storage."""
    self._stored = stored
    self._session = session
    self._show = show
    experiment = session.experiment
    self._timeout_seconds = experiment.timeout_seconds
    here = session.make_checkpointer()
    best = checkpointing.Checkpointer(session.best_directory, 1)
    # A fresh run does not upload the policy that an earlier run left.
    old_best = None if session.is_resumed else best.newest()
    self._series = (
      _Series(
        'checkpoint', stored.checkpoints, here, experiment.checkpoints_to_keep
      ),
      _Series('best policy', stored.best, best, 1, stored=old_best),
    )
    self._status: loggers.Status | None = None
    self._busy = ''
    self._is_lost = False
    self._ending, self._given_up = threading.Event(), threading.Event()
    self._note(stores_to=stored.shown, message=session.message)
    self._thread = threading.Thread(target=self._run, name=_NAME, daemon=True)
    self._thread.start()

  def show(self, status: loggers.Status) -> None:
    """Shows a status, with messages about the storage."""
    self._status = status
    self._show(self.complete(status))

  def complete(self, status: loggers.Status) -> loggers.Status:
    """Adds messages about the storage to a status."""
    return status.with_messages(status.message, *self._problems())

  def finish(self) -> str:
    """Waits until the newest is stored; returns why it is not, or ''."""
    self._ending.set()
    deadline = time.monotonic() + self._timeout_seconds
    waiting = f'to be stored in {self._stored.shown}'
    while self._thread.is_alive() and time.monotonic() < deadline:
      self._thread.join(_SHOW_SECONDS)
      if self._status is not None and (busy := self._busy):
        self._show(self._status.with_messages(f'{busy} {waiting}'))
    problem = '; '.join(self._problems())
    if self._thread.is_alive():
      self._given_up.set()
      problem = (
        f'Waited {self._timeout_seconds:g} seconds at the end of the run for '
        f'{self._busy or "checkpoints"} {waiting}'
      )
      self._warn(problem)
    if not problem:
      return ''
    # Another run owns the storage now, and may have learned more.
    storage_then = ' with another storage' if self._is_lost else ''
    return f'{problem.rstrip(".")}. The same command{storage_then} stores it.'

  def __enter__(self) -> 'Uploads':
    return self

  def __exit__(self, kind, error, traceback) -> None:
    try:
      # Uploads after a failure, but not after a second Ctrl-C.
      if isinstance(error, Exception) and not self._ending.is_set():
        self.finish()
    finally:
      self._given_up.set()
      self._ending.set()
      if self._thread.is_alive():
        logging.warning(
          'The last checkpoint may not be in %s.', self._stored.shown
        )
        self._thread.join(_CLOSE_SECONDS)

  def _run(self) -> None:
    is_last = False
    while not is_last:
      is_last = self._ending.wait(_LOOK_SECONDS)
      for series in self._series:
        try:
          self._store_newest(series, again=is_last)
        except signals.Stopped:
          return

  def _store_newest(self, series: _Series, again: bool) -> None:
    """Uploads the newest checkpoint; one that failed only if `again`."""
    what = f'the newest {series.what}'
    try:
      source = series.checkpointer.newest()
      if source in (None, series.stored):
        series.problem = ''
      elif again or source != series.failed:
        series.failed = source
        what = f'{series.what} {os.path.basename(source)}'
        self._store(series, source, what)
    except signals.Stopped:
      raise
    except Exception as error:  # From any package behind the storage.
      self._is_lost |= isinstance(error, checkpoints.LockLostError)
      problem = (
        f'{what} is not in {self._stored.shown}: {type(error).__name__}: '
        f'{error}'
      )
      if problem != series.problem:
        series.problem = problem
        self._warn(problem)

  def _store(self, series: _Series, source: str, what: str) -> None:
    links = self._session.storing_directory
    linked = os.path.join(links, os.path.basename(source))
    try:
      os.makedirs(links, exist_ok=True)
      try:
        checkpointing.link_tree(source, linked)
      except OSError:
        if os.path.exists(source):
          raise
        return  # It made way for a newer one, which is next.
      self._stored.lock.check()
      self._busy = what
      series.store.add(linked, self._stored.lock.check, self._count)
      series.stored, series.problem = source, ''
    finally:
      self._busy = ''
      shutil.rmtree(links, ignore_errors=True)
    try:
      series.store.keep_newest(series.max_to_keep)
    except Exception as error:  # The next one tries again.
      self._warn(
        f'checkpoints older than {what} could not be removed from '
        f'{self._stored.shown}: {type(error).__name__}: {error}'
      )

  def _problems(self) -> list[str]:
    return [series.problem for series in self._series if series.problem]

  def _count(self, num_bytes: int) -> None:
    del num_bytes
    if self._given_up.is_set():
      raise signals.Stopped

  def _warn(self, problem: str) -> None:
    logging.warning('%s', problem)
    self._note(warning=problem)

  def _note(self, **values: str) -> None:
    """Appends a row to the log of the nodes, in one call."""
    row = {'node': _NAME, 'run': self._session.counts['runs'], **values}
    path = os.path.join(self._session.log_directory, 'nodes.jsonl')
    try:
      with open(path, 'ab', buffering=0) as file:
        file.write(f'{json.dumps(row)}\n'.encode())
    except OSError as error:
      logging.warning('%s cannot be written: %s', path, error)


def run_and_upload(
  run: Callable[[Callable[[loggers.Status], None]], loggers.Status],
  stored: 'checkpoints.Storage | None',
  session: session_lib.Session,
  show: Callable[[loggers.Status], None],
) -> tuple[loggers.Status, str]:
  """Runs to the end, and uploads checkpoints to the storage, if any.

  Args:
    run: Called with the function that displays the status.

  Returns:
    The status at the end, and why the last checkpoint is not stored, or ''.
  """
  if stored is None:
    return run(show), ''
  with Uploads(stored, session, show) as uploads:
    status = run(uploads.show)
    not_stored = uploads.finish()
    return uploads.complete(status), not_stored
