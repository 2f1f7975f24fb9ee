"""Uploads of checkpoints to a storage during a run."""

import dataclasses
import json
import os
import shutil
import threading
import time
from collections.abc import Callable

from absl import logging

from repertory.components import checkpoints, loggers
from repertory.components.checkpoints import checkpointing
from repertory.components.runtime import signals
from repertory.launch.opening import session as session_lib

# Name of the node in `logs/nodes.jsonl`.
_NAME = 'storage'
_LOOK_SECONDS = 1.0
_SHOW_SECONDS = 0.25  # Period of progress reports at the end of the run.
_CLOSE_SECONDS = 2.0  # Time-out for the thread after an upload is canceled.


@dataclasses.dataclass
class _Series:
  """Local checkpoints, whose newest one is uploaded to a store.

  `stored` is the last one uploaded, or one to skip; `failed` the last one whose
  upload failed, to be tried again at the end; `problem` says why the newest is
  not stored.
  """

  what: str
  store: checkpoints.CheckpointStore
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
    stored: checkpoints.Storage,
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
