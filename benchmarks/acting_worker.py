"""An actor of `central_inference.py`, in a process of its own.

Steps environments for some seconds and prints what it did as JSON. It starts
when it reads a line, so that all actors start together.
"""

import json
import sys
import time

import psutil
import vector_environments

from repertory.components import callers, environment_loop
from repertory.components.inference import client as client_lib
from repertory.components.inference import thin_actor

_WARM_UP_SECONDS = 1.0


class _Timed:
  """Adds up the time that environments take."""

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


def main() -> None:
  """Runs what the argument, a JSON object, asks for."""
  settings = json.loads(sys.argv[1])
  ids = settings['environment_ids']
  environments = vector_environments.KINDS[settings['environment']](
    len(ids), ids[0]
  )
  timed = _Timed(environments)
  # TensorFlow only where the policy is.
  if settings['address']:
    from acme import specs  # noqa: PLC0415

    spec = specs.make_environment_spec(environments)
    client = client_lib.InferenceClient(
      settings['address'], spec, ids, caller=callers.Caller(f'actor/{ids[0]}')
    )
    actor = thin_actor.ThinActor(client, spec, len(ids))
  else:
    import acting_policies  # noqa: PLC0415

    actor = acting_policies.make_local_actor(settings, environments)
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
