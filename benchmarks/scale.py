"""Bottlenecks of a run with many actors.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/scale.py
    .venv/bin/python benchmarks/scale.py --env=atari:Pong --preset=atari

Coordinator, replay server and learner are those of a run of DQN, each in its
own process. Actors are simulated, so that two cores can run
hundreds (`scale_actors.py`): they only generate an actor's calls, many actors
to a process.

The first table shows the processor time of each call in the called process,
less its processor time without actors. The learner makes no update meanwhile,
so the served variables are cached. Another run, in which the learner learns
from a few actors, measures its speed.
"""

import contextlib
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import repertory  # noqa: F401  Before TensorFlow: see its first lines.

# isort: split
import cloudpickle
import dm_env
import figures
import numpy as np
import rich.console
import rich.table
import scale_actors

# Before absl's `app.run`: imported inside of it, TensorFlow 2.8 creates its
# context before it enables eager execution, and functions with loops fail.
import tensorflow as tf  # noqa: F401
import tree
from absl import app, flags

from repertory import launch
from repertory.launch.coordination import kinds
from repertory.launch.launchers import calls, local_nodes
from repertory.launch.opening import directory as directory_lib
from repertory.launch.opening import plan
from repertory.launch.topologies import distributed

_ENVIRONMENT = flags.DEFINE_string('env', 'catch', 'The environment.')
_PRESET = flags.DEFINE_string('preset', None, "Preset of DQN's settings.")
_ACTORS = flags.DEFINE_list('actors', '16,64,128,256', 'Numbers of actors.')
_STEPS = flags.DEFINE_float('steps_per_second', 4.0, 'Steps per actor.')
_SECONDS = flags.DEFINE_float('seconds', 10.0, 'Duration per measurement.')
_ROUNDS = flags.DEFINE_integer('rounds', 3, 'Rounds per case.')
_IN_A_PROCESS = flags.DEFINE_integer('in_a_process', 32, 'Actors per process.')

# Enough items that no call blocks on the rate limiter.
_MANY = 100_000
_LEARNING_ACTORS = 4
_IDLE_SECONDS = 4.0
_OBSERVE_SECONDS = 0.25  # As the launcher does.
_MAX_RECORDED, _MIN_RECORDED = 20_000, 100
_LAST = int(dm_env.StepType.LAST)
_START_SECONDS = 120.0
_HERE = os.path.dirname(os.path.abspath(__file__))

_COORDINATOR, _REPLAY, _LEARNER = (
  kind.name for kind in (kinds.COORDINATOR, kinds.REPLAY, kinds.LEARNER)
)
# The measured call of each node.
_ASKED = {_COORDINATOR: 'calls', _REPLAY: 'inserts', _LEARNER: 'fetches'}

Row = Mapping[str, float]


def microseconds(row: Row, node: str) -> float:
  """Returns the processor time of a node per call."""
  return 1e6 * row[f'busy/{node}'] / max(row[_ASKED[node]], 1e-9)


def measure(num_actors: int, *, learns: bool = False) -> Row:
  """Measures `num_actors` actors, with or without learning.

  Returns:
    Calls of the coordinator, inserts, fetches and updates are per second, and
    'busy/<node>' the fraction of a core beyond that without actors.
  """
  seconds = _SECONDS.value
  with _session(num_actors, learns) as session, _started(session) as nodes:
    rollout = _record(session)
    config = session.experiment.builder.config
    idle = _watch(nodes, _IDLE_SECONDS)
    settings = scale_actors.Settings(
      session=session,
      rollout=rollout,
      indices=(),
      addresses=nodes.addresses,
      token=nodes.token,
      replay_address=nodes.replay_address,
      steps_per_second=float('inf') if learns else _STEPS.value,
      fetches_per_second=(
        0.0 if learns else _STEPS.value / config.variable_update_period
      ),
      seconds=seconds,
    )
    with _started_actors(settings, num_actors) as processes:
      for process in processes:
        process.stdin.write(b'.')
        process.stdin.flush()
      _watch(nodes, scale_actors.WARM_UP_SECONDS)
      before = nodes.coordinator.status().learner_steps, _busy(processes)
      busy = _watch(nodes, seconds)
      after = nodes.coordinator.status().learner_steps, _busy(processes)
      rows = [json.loads(process.stdout.readline()) for process in processes]
  updates, actors_busy = (
    (late - early) / seconds for early, late in zip(before, after)
  )
  taken = [one for row in rows for one in row.pop('report_seconds')]
  found = {key: sum(row[key] for row in rows) for key in rows[0]}
  return {
    'calls': (found['reports'] + 2 * found['leases']) / seconds,
    'inserts': found['steps'] / seconds,
    'fetches': found['fetches'] / seconds,
    'updates': updates,
    'report_ms': 1e3 * float(np.percentile(taken, 50)),
    'report_ms_p99': 1e3 * float(np.percentile(taken, 99)),
    **{f'busy/{name}': busy[name] - idle[name] for name in busy},
    'busy/actors': actors_busy,
  }


@contextlib.contextmanager
def _session(num_actors: int, learns: bool) -> Iterator[Any]:
  with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    experiment = launch.make_experiment(
      'dqn',
      _ENVIRONMENT.value,
      max_steps=10**9,
      preset=_PRESET.value,
      config={
        'max_replay_size': _MANY,
        'min_replay_size': 500 if learns else _MANY,
      },
      directory=os.path.join(folder, 'run'),
      num_actors=num_actors,
      environments_per_actor=1,
      evaluation_episodes=0,
      checkpoint_replay=False,
    )
    checked = plan.make_plan(experiment, 'distributed')
    with directory_lib.open_run(checked) as session:
      yield session


class _Nodes:
  """The running nodes.

  Attributes:
    addresses: Address of each node, by name.
    token: Authentication token of the coordinator.
    coordinator: Client of the coordinator.
    replay_address: Address of the replay server.
  """

  def __init__(self, workers: local_nodes.LocalProcesses):
    self._processes = workers.processes
    clients = {name: workers.client(name) for name in _ASKED}
    self.addresses = {name: one.address for name, one in clients.items()}
    self.token = workers.program.token
    self.coordinator = scale_actors.make_coordinator_client(
      self.addresses, 'launcher', self.token
    )
    for client in clients.values():
      calls.wait_for_server(client)
    deadline = time.monotonic() + _START_SECONDS
    while not self._have_started():
      if time.monotonic() > deadline:
        raise TimeoutError(f'Waited {_START_SECONDS:g} seconds for the nodes.')
      time.sleep(_OBSERVE_SECONDS)
    self.replay_address = self.coordinator.address_of(_REPLAY)

  def _have_started(self) -> bool:
    states = dict(self.coordinator.observe().status.nodes)
    is_learning = states.get(_LEARNER) == 'running'
    return is_learning and bool(self.coordinator.address_of(_REPLAY))

  def busy_seconds(self) -> dict[str, float]:
    """Returns the processor time of each node, by name."""
    return {
      name: figures.processor_seconds(process.pid)
      for name, process in self._processes.items()
      if process.pid is not None
    }


@contextlib.contextmanager
def _started(session: Any) -> Iterator[_Nodes]:
  """Starts the nodes but actors, and kills them at the end."""
  program = distributed.Distributed().program(session)
  with local_nodes.launch_specs(program) as specs:
    addresses = {name: one.address for name, one in specs.items()}
    workers = local_nodes.LocalProcesses(
      program, addresses, session.log_directory
    )
    workers.is_forced = True
    try:
      for name in _ASKED:
        workers.start(specs[name])
      nodes = _Nodes(workers)
      nodes.coordinator.expect(program.names)
      yield nodes
    finally:
      workers.end()


def _record(session: Any) -> list[tuple[Any, Any]]:
  """Returns actions and timesteps of random episodes, from FIRST to LAST."""
  environment = session.make_environments([0])
  random = np.random.default_rng(0)
  spec = session.spec.actions
  first = tree.map_structure(np.array, environment.reset())
  rollout = [(np.zeros([1], spec.dtype), first)]
  while len(rollout) < _MAX_RECORDED:
    action = random.integers(spec.num_values, size=[1]).astype(spec.dtype)
    timestep = tree.map_structure(np.array, environment.step(action))
    rollout.append((action, timestep))
    if len(rollout) > _MIN_RECORDED and timestep.step_type[0] == _LAST:
      break
  environment.close()
  return rollout


@contextlib.contextmanager
def _started_actors(
  settings: scale_actors.Settings, num_actors: int
) -> Iterator[list[Any]]:
  """Starts processes of actors, and kills them at the end."""
  with contextlib.ExitStack() as stack:
    processes = []
    for first in range(0, num_actors, _IN_A_PROCESS.value):
      process: Any = stack.enter_context(
        subprocess.Popen(
          [sys.executable, os.path.join(_HERE, 'scale_actors.py')],
          stdin=subprocess.PIPE,
          stdout=subprocess.PIPE,
          stderr=subprocess.DEVNULL,
        )
      )
      stack.callback(process.kill)
      indices = range(first, min(first + _IN_A_PROCESS.value, num_actors))
      part = dataclasses.replace(settings, indices=indices)
      process.stdin.write(cloudpickle.dumps(part))
      process.stdin.flush()
      processes.append(process)
    for process in processes:
      if process.stdout.readline() != b'ready\n':
        raise RuntimeError('Actors did not start.')
    yield processes


def _busy(processes: Sequence[Any]) -> float:
  """Returns the processor time of processes."""
  return sum(figures.processor_seconds(process.pid) for process in processes)


def _watch(nodes: _Nodes, seconds: float) -> dict[str, float]:
  """Polls like the launcher; returns the fraction of a core of each node."""
  before, start = nodes.busy_seconds(), time.monotonic()
  while time.monotonic() < start + seconds:
    nodes.coordinator.observe()
    time.sleep(_OBSERVE_SECONDS)
  took = time.monotonic() - start
  after = nodes.busy_seconds()
  return {name: (after[name] - before[name]) / took for name in before}


def print_measured(found: Mapping[int, Sequence[Row]]) -> None:
  """Prints the measurements, by number of actors."""
  table = rich.table.Table(
    title=f'{_ENVIRONMENT.value}: {_STEPS.value:g} steps per second of each '
    'actor'
  )
  columns = {
    'calls/s of the coordinator': ('calls', 0),
    'a report, ms': ('report_ms', 2),
    '99 % within': ('report_ms_p99', 1),
    'inserts/s': ('inserts', 0),
    'fetches/s': ('fetches', 0),
    "actors' cores": ('busy/actors', 2),
  }
  for column in (
    'actors',
    *columns,
    'CPU µs a call',
    '… an insert',
    '… a fetch',
  ):
    table.add_column(column, justify='right')
  for num_actors, rows in found.items():
    table.add_row(
      str(num_actors),
      *(
        f'{statistics.median(row[key] for row in rows):,.{digits}f}'
        for key, digits in columns.values()
      ),
      *(
        figures.spread([microseconds(row, node) for row in rows], 0)
        for node in _ASKED
      ),
    )
  rich.console.Console(width=180).print(table)


def main(_) -> None:
  """Prints tables."""
  found = {int(actors): [] for actors in _ACTORS.value}
  learning = []
  for _ in range(_ROUNDS.value):
    for num_actors, rows in found.items():
      rows.append(measure(num_actors))
      print(num_actors, rows[-1], flush=True)
    learning.append(measure(_LEARNING_ACTORS, learns=True))
  print_measured(found)
  print(
    f'The learner makes {figures.spread([r["updates"] for r in learning], 0)} '
    'updates per second; meanwhile a step costs the replay server '
    + figures.spread([microseconds(row, _REPLAY) for row in learning], 0)
    + ' µs, its samples included.'
  )


if __name__ == '__main__':
  app.run(main)
