"""Metadata of whole runs: start, settings and outcome; needs no TensorFlow.

The launching process writes two lines to `logs/runs.jsonl`. A begin without an
end belongs to a run that is still running or was killed.
"""

import contextlib
import datetime
import os
import resource
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from absl import logging

from repertory import __version__
from repertory.components import loggers
from repertory.launch import failures
from repertory.launch.experiments import directories

FILE = 'runs.jsonl'
BEGUN, ENDED = 'begun', 'ended'  # Key of the line's time.
CPU_SECONDS = 'cpu_seconds'

# Outcomes of a run.
DONE, INTERRUPTED, FAILED = 'done', 'interrupted', 'failed'


@contextlib.contextmanager
def writing(
  log_directory: str, start: Mapping[str, Any]
) -> Iterator[Callable[['loggers.Status', int | None], None]]:
  """Logs the start of a run, and its outcome at the end of the block.

  It yields a function of the last status and of the signal that interrupted the
  run, or None. An exception that ends the block is logged instead.
  """
  ended: dict[str, Any] = {}
  began_at = _cpu_seconds()

  def take(status: 'loggers.Status', signal_number: int | None) -> None:
    ended.update(
      state=DONE if signal_number is None else INTERRUPTED,
      signal=signal_number,
      steps=status.steps,
      learner_steps=status.learner_steps,
      episodes=status.episodes,
      elapsed_seconds=status.elapsed_seconds,
      num_restarts=status.num_restarts,
      stopped_early=status.stopped_early or None,
      message=status.message,
    )

  path = os.path.join(log_directory, FILE)
  host = {'version': __version__, 'host': socket.gethostname()}
  _write(path, BEGUN, {**host, **start})
  try:
    yield take
  except BaseException as error:
    ended = _describe_error(error)
    raise
  finally:
    used = round(_cpu_seconds() - began_at, 3)
    _write(path, ENDED, {**ended, CPU_SECONDS: used})


def _cpu_seconds() -> float:
  """Returns the CPU time of this process, and of its children that ended."""
  kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
  found = [resource.getrusage(kind) for kind in kinds]
  return sum(one.ru_utime + one.ru_stime for one in found)


def _describe_error(error: BaseException) -> dict[str, Any]:
  if isinstance(error, (KeyboardInterrupt, SystemExit)):
    return {'state': INTERRUPTED, 'cause': 'without a last checkpoint'}
  if isinstance(error, failures.NodeError):
    failure = error.failure
    return {'state': FAILED, 'node': failure.node, 'cause': failure.summary}
  return {'state': FAILED, 'cause': f'{type(error).__name__}: {error}'}


def _write(path: str, key: str, row: Mapping[str, Any]) -> None:
  """Appends a line; on failure, warns and lets the run continue."""
  time = datetime.datetime.now(datetime.timezone.utc)
  try:
    try:
      file = loggers.JsonlFile(path)
    except (loggers.GarbledError, IsADirectoryError) as error:
      aside = directories.set_aside(path)
      logging.warning('%s set aside as %s: %s', path, aside, error)
      file = loggers.JsonlFile(path)
    with contextlib.closing(file):
      file.write({key: time.isoformat(timespec='seconds'), **row})
  except OSError as error:
    logging.warning(
      '%s cannot be written: %s: %s', path, type(error).__name__, error
    )
