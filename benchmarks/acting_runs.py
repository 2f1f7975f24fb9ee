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

from repertory.components import specs
from repertory.components.inference import (
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
  device: str | None = None,
) -> Iterator[server.InferenceServer]:
  """Serves actors, without a learner.

  Args:
    network: See `acting_policies.NETWORKS`.
    actors: Number of actors.
    environments: Number of environments per actor.
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
  service = server.InferenceServer(
    spec,
    store,
    stop=stop,
  )
  thread = threading.Thread(target=service.serve)
  thread.start()
  try:
    yield service
  finally:
    stop.set()
    thread.join()
    service.close()


def _spec_of(network: str) -> specs.EnvironmentSpec:
  """Returns the environment spec of a network."""
  kind = vector_environments.KINDS[_kind(network)]
  return specs.make_environment_spec(kind(1, 0))


def _kind(network: str) -> str:
  return 'pixels' if network == 'images' else 'vector'
