"""Actor processes and inference server of the inference benchmarks."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import acting_policies
import vector_environments

from repertory.components import loggers, replay, specs, transports
from repertory.components import variables as variables_lib
from repertory.components.inference import (
  addresses,
  client,
  connections,
  server,
  state_store,
)
from repertory.components.runtime import compilation, signals
from repertory.launch.nodes import inference

_HERE = os.path.dirname(os.path.abspath(__file__))
_ANSWER_SECONDS = 120


def run_actors(
  network: str,
  actors: int,
  environments: int,
  *,
  address: str,
  seconds: float,
) -> dict[str, float]:
  """Runs actors side by side.

  Args:
    network: See `acting_policies.NETWORKS`.
    actors: Number of actors.
    environments: Number of environments per actor.
    address: Address of the inference server; '' gives each actor its own
      policy.
    seconds: Duration of the measurement.

  Returns:
    Means of the printed values; of 'steps_per_second', the sum.
  """
  worker = os.path.join(_HERE, 'acting_worker.py')
  workers: list[Any] = []
  for index in range(actors):
    settings = {
      'network': network,
      'environment': _kind(network),
      'environment_ids': list(
        range(index * environments, (index + 1) * environments)
      ),
      'address': address,
      'seconds': seconds,
    }
    workers.append(
      subprocess.Popen(
        [sys.executable, worker, json.dumps(settings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
      )
    )
  try:
    rows = _results(workers)
  finally:
    for worker in workers:
      worker.kill()
      worker.wait()
  mean = {key: sum(row[key] for row in rows) / actors for key in rows[0]}
  mean['steps_per_second'] *= actors
  return mean


def _results(workers: Sequence[Any]) -> list[dict[str, float]]:
  """Starts all actors at once; returns the values they print."""
  for worker in workers:
    if worker.stdout.readline() != 'ready\n':
      raise RuntimeError('An actor did not start.')
  for worker in workers:
    worker.stdin.write('go\n')
    worker.stdin.flush()
  return [
    json.loads(worker.communicate(timeout=_ANSWER_SECONDS)[0])
    for worker in workers
  ]


@contextlib.contextmanager
def serve(
  network: str,
  actors: int,
  environments: int,
  *,
  learns: bool = False,
  device: str | None = None,
) -> Iterator[tuple[server.InferenceServer, 'Learner | None']]:
  """Serves actors, optionally with a learner.

  Args:
    network: See `acting_policies.NETWORKS`.
    actors: Number of actors.
    environments: Number of environments per actor.
    learns: Whether IMPALA learns from them.
    device: Device of the policy; None for TensorFlow's choice.
  """
  builder, spec = acting_policies.make_builder(network), _spec_of(network)
  total = actors * environments
  stop = signals.StopSignal()
  with compilation.on_device(device):
    net = builder.make_network(spec)
  store = state_store.StateStore(
    acting_policies.make_policy(builder, spec, net, total),
    spec.observations,
    total,
    inference.make_buckets([environments] * actors),
    jit_compile=builder.config.jit_compile is not False,
    device=device,
  )
  learner = variables = make_adder = None
  if learns:
    learner = Learner(builder, spec, environments, total, stop)
    copies, source = net.variables, learner.publisher
    variables = variables_lib.LocalVariableClient(source, copies)
    make_adder = learner.make_adder
  service = server.InferenceServer(
    addresses.make_address(),
    spec,
    {client.TRAINING: connections.Role(store, make_adder, variables)},
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


class Learner:
  """IMPALA's learner and its queue, in this process."""

  def __init__(self, builder, spec, num_slots: int, num_environments, stop):
    self._stop = stop
    experience = builder.experience(spec, num_environments).bundled(num_slots)
    self._server = replay.make_server(experience.tables)
    connection = replay.Connection(f'localhost:{self._server.port}', 60.0, stop)
    self._transport = transports.ReverbTransport(
      connection, experience, builder
    )
    network = builder.make_network(spec)
    self._end = self._transport.make_learner_side()
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

  def make_adder(self, lane: connections.ActorConnection) -> Any:
    return self._transport.make_adder(
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


def _spec_of(network: str) -> specs.EnvironmentSpec:
  """Returns the environment spec of a network."""
  kind = vector_environments.KINDS[_kind(network)]
  return specs.make_environment_spec(kind(1, 0))


def _kind(network: str) -> str:
  return 'pixels' if network == 'images' else 'vector'
