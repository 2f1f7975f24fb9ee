"""Fetches checkpoints from a run's storage, and uploads to it."""

import contextlib
import dataclasses
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

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


@contextlib.contextmanager
def holding(
  stored: 'checkpoints.Storage',
  experiment: experiment_lib.Experiment,
  fresh: bool,
  check: Callable[[checkpointing.Checkpoint], None],
  report: Callable[[str], None],
) -> Iterator[str]:
  """Locks a run's storage, and yields what was done.

  Its newer checkpoints are fetched; with `fresh`, its contents are moved aside.
  `check` raises for a checkpoint of another experiment.
  """
  done = ''
  with contextlib.ExitStack() as held:
    with _watched(stored.shown, experiment.directory):
      held.enter_context(stored.lock.owning(report))
      stored.remove_unfinished()
      if not fresh:
        done = _fetch_newer(stored, experiment, check, report)
      elif aside := stored.move_aside():
        done = f'old checkpoints were moved to {aside}'
    yield done


@contextlib.contextmanager
def _watched(shown: str, directory: str) -> Iterator[None]:
  """Raises NoAnswerError in a block in which no bytes arrive for long."""

  def num_bytes() -> int:
    total = 0
    for root, _, names in os.walk(directory):
      for name in names:
        with contextlib.suppress(OSError):  # It was renamed meanwhile.
          total += os.path.getsize(os.path.join(root, name))
    return total

  seconds = watchdog.START_SECONDS
  late = signals.NoAnswerError(
    f'Waited {seconds:g} seconds for {shown} to answer.'
  )
  try:
    with (
      interrupts.interruptible() as demand,
      watchdog.watching(num_bytes, seconds, lambda waited: demand(late)),
    ):
      yield
  except (SettingError, signals.NoAnswerError):
    raise
  except Exception as error:  # From any package behind the storage.
    raise SettingError(
      'storage',
      f'must be readable and writable, got {shown}: {text_of(error)}.',
    ) from error


def _fetch_newer(
  stored: 'checkpoints.Storage',
  experiment: experiment_lib.Experiment,
  check: Callable[[checkpointing.Checkpoint], None],
  report: Callable[[str], None],
) -> str:
  """Fetches what is newer or better than here; returns what was done."""

  def fetch(
    store: 'checkpoints.CheckpointStore',
    name: str,
    max_to_keep: int,
    rank: Callable[[Mapping[str, Any]], Any],
  ) -> str:
    newest = store.newest()
    if newest is None:
      return ''
    # Before it is fetched.
    check(checkpointing.Checkpoint(newest.path, {}, newest.state, None))
    path = os.path.join(experiment.directory, name)
    here = checkpointing.Checkpointer(path, max_to_keep)
    mine = here.load(check_replay=False)
    if mine is not None:
      check(mine)
      if rank(mine.state) >= rank(newest.state):
        return ''
    report(f'fetching {newest.path}, {newest.num_bytes / 1e6:.1f} MB')
    here.add(lambda folder: store.fetch(newest, folder), newest.number)
    return (
      f'checkpoint {newest.number:08d}, of {newest.steps} steps and '
      f'{newest.learner_steps} updates, was fetched from {newest.path}'
    )

  done = fetch(
    stored.checkpoints,
    directories.CHECKPOINTS,
    experiment.checkpoints_to_keep,
    lambda state: (state['counts']['learner_steps'], state['counts']['steps']),
  )
  try:
    best = fetch(
      stored.best,
      directories.BEST,
      1,
      lambda state: state['evaluation']['episode_return'],
    )
  except checkpointing.CheckpointError as error:  # Training does without.
    best = f'the best policy was not fetched: {error.problem}'
  return '; '.join(filter(None, (done, best)))


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
    self._timeout_seconds = session.experiment.timeout_seconds
    num_kept = session.experiment.checkpoints_to_keep
    here = session.make_checkpointer()
    best = checkpointing.Checkpointer(session.best_directory, 1)
    # A fresh run does not upload the policy that an earlier run left.
    old_best = None if session.is_resumed else best.newest()
    self._series = (
      _Series('checkpoint', stored.checkpoints, here, num_kept),
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
    problems = (series.problem for series in self._series)
    return status.with_messages(status.message, *filter(None, problems))

  def finish(self) -> str:
    """Waits until the newest is stored; returns why it is not, or ''."""
    self._ending.set()
    deadline = time.monotonic() + self._timeout_seconds
    waiting = f'to be stored in {self._stored.shown}'
    while self._thread.is_alive() and time.monotonic() < deadline:
      self._thread.join(_SHOW_SECONDS)
      if self._status is not None and (busy := self._busy):
        self._show(self._status.with_messages(f'{busy} {waiting}'))
    problem = '; '.join(s.problem for s in self._series if s.problem)
    if self._thread.is_alive():
      self._given_up.set()
      problem = (
        f'Waited {self._timeout_seconds:g} seconds at the end of the run for '
        f'{self._busy or "checkpoints"} {waiting}'
      )
      self._note(warning=problem)
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
        what = f'the newest {series.what}'
        try:
          source = series.checkpointer.newest()
          if source in (None, series.stored):
            series.problem = ''
          elif is_last or source != series.failed:
            series.failed = source
            what = f'{series.what} {os.path.basename(source)}'
            self._store(series, source, what)
        except signals.Stopped:
          return
        except Exception as error:  # From any package behind the storage.
          self._is_lost |= isinstance(error, checkpoints.LockLostError)
          kind = type(error).__name__
          problem = f'{what} is not in {self._stored.shown}: {kind}: {error}'
          if problem != series.problem:
            series.problem = problem
            self._note(warning=problem)

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
      self._busy = what
      series.store.add(linked, self._check)
      series.stored, series.problem = source, ''
    finally:
      self._busy = ''
      shutil.rmtree(links, ignore_errors=True)
    try:
      series.store.keep_newest(series.max_to_keep)
    except Exception as error:  # The next one tries again.
      self._note(
        warning=f'checkpoints older than {what} could not be removed from '
        f'{self._stored.shown}: {type(error).__name__}: {error}'
      )

  def _check(self) -> None:
    """Raises an error if nothing must be uploaded any more."""
    if self._given_up.is_set():
      raise signals.Stopped
    self._stored.lock.check()

  def _note(self, **values: str) -> None:
    """Appends a row to the log of the nodes, in one call."""
    if 'warning' in values:
      logging.warning('%s', values['warning'])
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
