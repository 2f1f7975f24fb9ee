"""Actor process of `central_inference.py`.

Steps environments for some seconds and prints the results as JSON. It starts
when it reads a line, so that all actors start together.
"""

import json
import sys
import time

import psutil
import vector_environments

from repertory.components.actors import environment_loop
from repertory.components.inference import client as client_lib
from repertory.components.network import callers

_WARM_UP_SECONDS = 1.0


class _Timed:
  """Measures the time spent in environments."""

  def __init__(self, environments):
    self._environments = environments
    self.batch_size = environments.batch_size
    self.seconds = 0.0

  def reset(self):
    return self._environments.reset()

  def step(self, actions):
    start = time.perf_counter()
    timestep = self._environments.step(actions)
    self.seconds += time.perf_counter() - start
    return timestep


def _make_actor(settings, environments):
  """Makes an actor of the server at an address, or with a local policy."""
  ids, address = settings['environment_ids'], settings['address']
  # TensorFlow is imported only for a local policy.
  if not address:
    import acting_policies  # noqa: PLC0415

    return acting_policies.make_local_actor(settings, environments)
  from acme import specs  # noqa: PLC0415

  spec = specs.make_environment_spec(environments)
  client = client_lib.InferenceClient(
    address, spec, ids, caller=callers.Caller(f'actor/{ids[0]}')
  )
  return client_lib.ThinActor(client, spec, len(ids))


def main() -> None:
  """Runs the measurement described by the argument, a JSON object."""
  settings = json.loads(sys.argv[1])
  ids = settings['environment_ids']
  environments = vector_environments.KINDS[settings['environment']](
    len(ids), ids[0]
  )
  actor = _make_actor(settings, environments)
  timed = _Timed(environments)
  loop = environment_loop.EnvironmentLoop(timed, actor)
  loop.step()
  print('ready', flush=True)
  sys.stdin.readline()
  _run(loop, _WARM_UP_SECONDS)
  timed.seconds = 0.0
  start = time.perf_counter()
  steps = _run(loop, settings['seconds'])
  seconds = time.perf_counter() - start
  print(
    json.dumps(
      {
        'steps_per_second': steps / seconds,
        'environment_share': timed.seconds / seconds,
        'memory_mb': psutil.Process().memory_info().rss / 2**20,
      }
    ),
    flush=True,
  )


def _run(loop: environment_loop.EnvironmentLoop, seconds: float) -> int:
  steps, end = 0, time.perf_counter() + seconds
  while time.perf_counter() < end:
    steps += loop.step()[0]
  return steps


if __name__ == '__main__':
  main()
