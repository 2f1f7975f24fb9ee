"""Environment steps per second with central inference.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/central_inference.py

Actors are processes that step cheap environments of arrays. In each line the
same actors act with an inference server (acting only, then with IMPALA learning
beside it) and with a network of their own each, one after the other in the same
minute.

Shares are of an actor's time: its environments, and of the round trip the
transport, waiting for a batch, and the network, by their medians. Replay's is
the share of the server's time in which it hands items over or waits for the
queue.

How fast the machine is in that minute is told by a bare loop over one CartPole
of gymnasium, before and after: compare machines and hours by 'central / bare'.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

import gymnasium
import rich.console
import rich.table
import vector_environments
from absl import app, flags

import acting_policies
from repertory.components import loggers, replay, roads, signals, specs
from repertory.components import variables as variables_lib
from repertory.components.inference import (
  addresses,
  client,
  lanes,
  server,
  state_store,
)
from repertory.launch.nodes import inference

_NETWORKS = flags.DEFINE_list('networks', 'mlp,lstm', 'mlp, lstm, images.')
_CASES = flags.DEFINE_list(
  'cases', '1x1,2x16,2x64,4x16,8x16', 'Actors x environments of each.'
)
_SECONDS = flags.DEFINE_float(
  'seconds', 4.0, 'How long each measurement takes.'
)
_HERE = os.path.dirname(os.path.abspath(__file__))


def run_actors(network, actors, environments, address) -> dict[str, float]:
  """Runs actors side by side; returns sums and means of what they print."""
  workers = []
  for index in range(actors):
    ids = list(range(index * environments, (index + 1) * environments))
    settings = {
      'network': network,
      'environment': 'pixels' if network == 'images' else 'vector',
      'environment_ids': ids,
      'address': address,
      'seconds': _SECONDS.value,
    }
    workers.append(
      subprocess.Popen(
        [
          sys.executable,
          os.path.join(_HERE, 'acting_worker.py'),
          json.dumps(settings),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
      )
    )
  for worker in workers:
    if worker.stdout.readline() != 'ready\n':
      raise RuntimeError('An actor did not start.')
  for worker in workers:
    worker.stdin.write('go\n')
    worker.stdin.flush()
  rows = [json.loads(worker.communicate(timeout=120)[0]) for worker in workers]
  mean = {key: sum(row[key] for row in rows) / actors for key in rows[0]}
  mean['steps_per_second'] *= actors
  return mean


@contextlib.contextmanager
def serve(network: str, actors: int, environments: int, learns: bool):
  """Serves actors, with a learner beside it if asked for."""
  builder = acting_policies.make_builder(network)
  kind = 'pixels' if network == 'images' else 'vector'
  spec = specs.make_environment_spec(vector_environments.KINDS[kind](1, 0))
  total = actors * environments
  stop = signals.StopSignal()
  net = builder.make_network(spec)
  store = state_store.StateStore(
    acting_policies.make_policy(builder, spec, net, total),
    spec.observations,
    total,
    inference.make_buckets([environments] * actors),
    jit_compile=builder.config.jit_compile is not False,
  )
  learner = None
  if learns:
    learner = _Learner(builder, spec, environments, total, stop)
  variables = make_adder = None
  if learner:
    variables = variables_lib.PublishedVariables(
      learner.publisher, net.variables
    )
    make_adder = learner.make_adder
  service = server.InferenceServer(
    addresses.make_address(),
    spec,
    {client.TRAINING: lanes.Role(store, make_adder, variables)},
    stop=stop,
  )
  threads = [threading.Thread(target=service.serve)]
  if learner:
    threads.append(threading.Thread(target=learner.run))
  for thread in threads:
    thread.start()
  try:
    yield service, learner
  finally:
    stop.set()
    for thread in threads:
      thread.join()
    service.close()
    if learner:
      learner.close()


class _Learner:
  """IMPALA's learner and its queue, in this process."""

  def __init__(self, builder, spec, num_slots: int, num_environments, stop):
    self._stop = stop
    experience = builder.experience(spec, num_environments).bundled(num_slots)
    self._server = replay.make_server(experience.tables)
    connection = replay.Connection(f'localhost:{self._server.port}', 60.0, stop)
    self._road = roads.ReverbRoad(connection, experience, builder)
    network = builder.make_network(spec)
    self._end = self._road.make_learner_end()
    self._learner = builder.make_learner(
      builder.make_update(network, spec),
      self._end.batches,
      self._end.priorities,
      loggers.Dispatch([]),
      jit_compile=builder.config.jit_compile is not False,
    )
    self.publisher = variables_lib.Publisher(network.variables)
    self.publisher.publish(0, 1.0)

  @property
  def steps(self) -> int:
    return self._learner.steps

  def make_adder(self, lane: lanes.Lane) -> Any:
    return self._road.make_adder(
      lane.batch_size,
      priority=lambda: 1.0,
      version=lambda: lane.written_version,
    )

  def run(self) -> None:
    with contextlib.suppress(signals.Stopped):
      while not self._stop.is_set():
        self._learner.step()
        self.publisher.publish(self._learner.steps, 1.0)

  def close(self) -> None:
    self._end.close()
    self._server.stop()


def measure_gymnasium_loop(seconds: float = 1.0) -> float:
  """Returns the steps per second of a CartPole and nothing else."""
  environment = gymnasium.make('CartPole-v1')
  environment.reset(seed=0)
  steps, start = 0, time.perf_counter()
  while (elapsed := time.perf_counter() - start) < seconds:
    for action in range(2):
      *_, terminated, truncated, _ = environment.step(action)
      if terminated or truncated:
        environment.reset()
      steps += 1
  return steps / elapsed


def measure(network: str, actors: int, environments: int) -> list[str]:
  """Returns a line of the table."""
  bare_before = measure_gymnasium_loop()
  with serve(network, actors, environments, learns=False) as (service, _):
    address = service.address
    acting = run_actors(network, actors, environments, address)
    shares = _shares(acting, service.report())
  with serve(network, actors, environments, learns=True) as (service, learner):
    service.report()
    start = time.perf_counter()
    learning = run_actors(network, actors, environments, service.address)
    steps = learner.steps if learner else 0
    updates = steps / (time.perf_counter() - start)
    row = service.report()
    learning_shares = f'{_shares(learning, row)} + {row["adding_share"]:.0%}'
  local = run_actors(network, actors, environments, '')
  bare = (bare_before + measure_gymnasium_loop()) / 2
  rate = acting['steps_per_second']
  return [
    network,
    f'{actors} × {environments}',
    f'{rate:,.0f}',
    f'{learning["steps_per_second"]:,.0f}',
    f'{learning["steps_per_second"] / rate:.2f}',
    f'{local["steps_per_second"]:,.0f}',
    f'{rate / local["steps_per_second"]:.2f}',
    shares,
    learning_shares,
    f'{row["rows_per_batch"]:.0f}',
    f'{updates:.0f}',
    f'{acting["memory_mb"]:.0f} / {local["memory_mb"]:.0f}',
    f'{bare:,.0f}',
    f'{rate / bare:.2f}',
  ]


def _shares(actors: dict[str, float], server_row: dict[str, float]) -> str:
  """Returns the shares of environments, transport, waiting and network."""
  parts = [
    server_row[f'{name}_ms_p50'] for name in ('transport', 'wait', 'run')
  ]
  environments = actors['environment_share']
  scale = (1 - environments) / sum(parts)
  shares = [environments, *(scale * part for part in parts)]
  return ' + '.join(f'{share:.0%}' for share in shares)


def main(_) -> None:
  """Prints a table."""
  table = rich.table.Table(title='Environment steps per second')
  for column in (
    'network',
    'actors × environments',
    'central',
    '… and learning',
    '… / acting',
    'local',
    'central / local',
    'environment + transport + wait + network',
    '… and learning, + replay',
    'rows',
    'updates/s',
    'MB an actor, central / local',
    'bare loop',
    'central / bare',
  ):
    table.add_column(column, justify='right')
  console = rich.console.Console(width=150)
  for network in _NETWORKS.value:
    for case in _CASES.value:
      row = measure(network, *map(int, case.split('x')))
      table.add_row(*row)
      console.print(' | '.join(row))
  console.print(table)


if __name__ == '__main__':
  app.run(main)
