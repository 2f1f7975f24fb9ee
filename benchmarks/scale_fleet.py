"""Actors of `scale.py`, spread over a few processes."""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import cloudpickle
import figures
import scale_actors

_HERE = os.path.dirname(os.path.abspath(__file__))


class Fleet:
  """The actor processes."""

  def __init__(self, processes: Sequence[Any]):
    self._processes = processes
    for process in processes:
      if process.stdout.readline() != b'ready\n':
        raise RuntimeError('Actors did not start.')

  def go(self) -> None:
    """Starts all actors."""
    for process in self._processes:
      process.stdin.write(b'.')
      process.stdin.flush()

  def busy_seconds(self) -> float:
    """Returns the processor time of all processes."""
    return sum(
      figures.processor_seconds(process.pid) for process in self._processes
    )

  def results(self) -> dict[str, Any]:
    """Returns the sums of the printed values."""
    rows = [
      json.loads(process.stdout.readline()) for process in self._processes
    ]
    return {key: sum((row[key] for row in rows), start=type(rows[0][key])())
            for key in rows[0]}  # fmt: skip


@contextlib.contextmanager
def started(
  settings: scale_actors.Settings, num_actors: int, in_a_process: int
) -> Iterator[Fleet]:
  """Starts actors, and kills them at the end.

  Args:
    settings: Settings of all processes, except for the indices.
    num_actors: Total number of actors.
    in_a_process: Number of actors per process.
  """
  with contextlib.ExitStack() as stack:
    processes = []
    for first in range(0, num_actors, in_a_process):
      indices = range(first, min(first + in_a_process, num_actors))
      process: Any = subprocess.Popen(
        [sys.executable, os.path.join(_HERE, 'scale_actors.py')],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
      )
      stack.callback(_end, process)
      part = dataclasses.replace(settings, indices=indices)
      process.stdin.write(cloudpickle.dumps(part))
      process.stdin.flush()
      processes.append(process)
    yield Fleet(processes)


def _end(process: Any) -> None:
  process.kill()
  process.wait()
  for pipe in (process.stdin, process.stdout):
    pipe.close()
