"""Real replay servers for tests, and items of their tables."""

import contextlib
import os
import signal
import subprocess
import sys
from typing import Any

import dm_env
import numpy as np
import psutil
import tensorflow as tf
import tree
from dm_env import specs as dm_env_specs

from repertory.components import adders, replay, specs
from support.system import calls, stacks

# Time-out of calls that should not block.
DEADLINE_SECONDS = 20.0

# Signature of tables of numbers.
SIGNATURE = {'x': tf.TensorSpec((), tf.int64)}

# For the second table of `ServerProcess`.
TRANSITIONS = 'transitions'
TRANSITION_SPEC = specs.EnvironmentSpec(
  observations=dm_env_specs.Array((), np.int64),
  actions=dm_env_specs.Array((), np.int32),
  rewards=dm_env_specs.Array((), np.float32),
  discounts=dm_env_specs.BoundedArray((), np.float32, 0, 1),
)

# Tables served by this module, by address and name.
_tables: dict[tuple[str, str], replay.TableSpec] = {}

# A rate limit that never blocks.
NO_LIMIT = replay.RateLimit(1.0, min_size=1, error_buffer=float('inf'))

_SERVER_SOURCE = """
import sys
from support.replay import replay_fixture
from repertory.components import replay

server = replay.make_server(replay_fixture.make_process_tables())
print(server.port, flush=True)
sys.stdin.read()  # Ends when the test ends, however that comes about.
"""


def make_prioritized(priority_exponent=1.0, rate_limit=NO_LIMIT, max_size=1000):
  """Describes a prioritized table of numbers."""
  return replay.prioritized(SIGNATURE, max_size, rate_limit, priority_exponent)


def make_process_tables():
  """Describes the tables of `ServerProcess`: of numbers, and of transitions."""
  signature = adders.Transitions(1, 0.9).signature(TRANSITION_SPEC)
  transitions = replay.uniform(signature, 1000, NO_LIMIT, name=TRANSITIONS)
  return [make_prioritized(), transitions]


@contextlib.contextmanager
def serve(*tables, **settings):
  """Runs a server in this process; yields a connection with the settings."""
  stacks.require_reverb()
  server = replay.make_server(tables)
  settings.setdefault('timeout_seconds', DEADLINE_SECONDS)
  address = f'localhost:{server.port}'
  remember(address, tables)
  try:
    yield replay.Connection(address, **settings)
  finally:
    server.stop()


def remember(address, tables):
  """Registers a server's tables, for readers and writers of this module."""
  _tables.update({(address, table.name): table for table in tables})


def table_of(connection, name=replay.DEFAULT_TABLE) -> replay.TableSpec:
  """Returns the description of a table that was served here."""
  return _tables[connection.address, name]


def make_writer(connection, name=replay.DEFAULT_TABLE, **settings):
  """Makes a writer to a table that was served here."""
  return replay.ReverbWriter(connection, table_of(connection, name), **settings)


def insert(connection, values, priorities=None, table=replay.DEFAULT_TABLE):
  """Inserts numbers one by one."""
  priorities = priorities or [1.0] * len(values)
  with connection.client.trajectory_writer(1) as writer:
    for value, priority in zip(values, priorities):
      (record,) = replay.Packing(SIGNATURE).pack([np.array([value])])
      writer.append([record])
      writer.create_item(table, priority, [writer.history[0][-1]])
      writer.flush(timeout_ms=int(DEADLINE_SECONDS * 1000))


def sample(connection, num_samples, table=replay.DEFAULT_TABLE) -> list[Any]:
  """Samples items or bundles; fails if there are too few."""
  sampled = connection.client.sample(table, num_samples, emit_timesteps=False)
  bundles = list(sampled)
  columns = map(np.stack, zip(*(bundle.data for bundle in bundles)))
  description = table_of(connection, table)
  leaves = tree.map_structure(
    np.asarray, description.packing.unpack(list(columns))
  )
  size = description.bundle_size
  return [
    bundles[k // size]._replace(
      data=tree.map_structure(lambda leaf, k=k: leaf[k], leaves)
    )
    for k in range(len(bundles) * size)
  ]


def play(adder, numbers, add=None):
  """Adds episodes of one step, which makes an item of `TRANSITION_SPEC`.

  Args:
    adder: An adder of one slot.
    numbers: First observations of the episodes; the last ones are -1.
    add: Function to call in place of `adder.add`.
  """

  def timestep(step_type, number):
    ones = np.ones([1], np.float32)
    return dm_env.TimeStep(
      np.array([step_type], np.int32), ones, ones, np.array([number], np.int64)
    )

  for number in numbers:
    adder.add_first(timestep(dm_env.StepType.FIRST, number))
    last = timestep(dm_env.StepType.LAST, -1)
    (add or adder.add)(np.zeros([1], np.int32), last)


def drain(connection, table=replay.DEFAULT_TABLE) -> list[Any]:
  """Samples as many items as a table has; from a queue, all in order."""
  size = table_status(connection, table).size
  return sample(connection, size, table) if size else []


def table_status(connection, table=replay.DEFAULT_TABLE):
  """Returns the state of a table."""
  return replay.table_status(connection.client)[table]


class Call(calls.Call):
  """A function call in a thread, which may block without blocking the test."""

  def is_waiting(self, seconds=0.5):
    return super().is_waiting(seconds)

  def result(self, seconds=DEADLINE_SECONDS):
    return super().result(seconds)


def wait_until(condition, what, seconds=DEADLINE_SECONDS):
  """Polls a condition; on time-out, fails with its description."""
  calls.wait_until(condition, what, seconds)


def no_threads_left():
  """Fails if a thread started in the block outlives it."""
  return calls.no_threads_left(DEADLINE_SECONDS)


class ServerProcess:
  """A server in a child process, which may be killed."""

  def __init__(self):
    stacks.require_reverb()
    paths = filter(None, sys.path)
    self._process = subprocess.Popen(
      [sys.executable, '-c', _SERVER_SOURCE],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=subprocess.DEVNULL,
      env=os.environ | {'PYTHONPATH': os.pathsep.join(paths)},
      text=True,
    )
    self._port = int(Call(self._process.stdout.readline).result(60))
    remember(f'localhost:{self._port}', make_process_tables())

  def connect(self, **settings):
    """Returns a new connection to it."""
    settings.setdefault('timeout_seconds', DEADLINE_SECONDS)
    return replay.Connection(f'localhost:{self._port}', **settings)

  def freeze(self):
    """Suspends the server; connections stay open."""
    self._process.send_signal(signal.SIGSTOP)
    wait_until(
      lambda: (
        psutil.Process(self._process.pid).status() == psutil.STATUS_STOPPED
      ),
      'the stop of the process',
    )

  def thaw(self):
    """Resumes the server, which answers pending calls."""
    self._process.send_signal(signal.SIGCONT)

  def kill(self):
    """Kills the server with SIGKILL, and waits for its end."""
    self._process.send_signal(signal.SIGKILL)
    self._process.wait(DEADLINE_SECONDS)
    self._process.stdin.close()
    self._process.stdout.close()
