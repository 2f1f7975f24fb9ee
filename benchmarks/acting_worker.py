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
from repertory.components.inference import thin_actor
from repertory.components.runtime import callers

_WARM_UP_SECONDS = 1.0


class _Timed:
  """Measures the time spent in environments, and can slow them down."""

  def __init__(self, environments, step_seconds: float):
    self._environments = environments
    self._step_seconds = step_seconds
    self.batch_size = environments.batch_size
    self.seconds = 0.0

  def reset(self):
    return self._environments.reset()

  def step(self, actions):
    start = time.perf_counter()
    timestep = self._environments.step(actions)
    if self._step_seconds:
      time.sleep(self._step_seconds)
    self.seconds += time.perf_counter() - start
    return timestep


class Acting:
  """Environments with their policy, local or remote.

  Attributes:
    environments: The environments, with the seconds they took.
  """

  def __init__(self, settings, ids, address: str, step_seconds: float = 0.0):
    """Connects to the server at an address; '' creates a local policy."""
    environments = vector_environments.KINDS[settings['environment']](
      len(ids), ids[0]
    )
    self.environments = _Timed(environments, step_seconds)
    # TensorFlow is imported only for a local policy.
    if address:
      from acme import specs  # noqa: PLC0415

      spec = specs.make_environment_spec(environments)
      client = client_lib.InferenceClient(
        address, spec, ids, caller=callers.Caller(f'actor/{ids[0]}')
      )
      actor = thin_actor.ThinActor(client, spec, len(ids))
    else:
      import acting_policies  # noqa: PLC0415

      actor = acting_policies.make_local_actor(settings, environments)
    self._loop = environment_loop.EnvironmentLoop(self.environments, actor)
    self.step()

  def step(self) -> int:
    """Steps all environments; returns the number of steps."""
    return self._loop.step()[0]


def main() -> None:
  """Runs the measurement described by the argument, a JSON object."""
  settings = json.loads(sys.argv[1])
  acting = Acting(settings, settings['environment_ids'], settings['address'])
  print('ready', flush=True)
  sys.stdin.readline()
  _run(acting, _WARM_UP_SECONDS)
  acting.environments.seconds = 0.0
  start = time.perf_counter()
  steps = _run(acting, settings['seconds'])
  seconds = time.perf_counter() - start
  print(
    json.dumps(
      {
        'steps_per_second': steps / seconds,
        'environment_share': acting.environments.seconds / seconds,
        'memory_mb': psutil.Process().memory_info().rss / 2**20,
      }
    ),
    flush=True,
  )


def _run(acting: Acting, seconds: float) -> int:
  steps, end = 0, time.perf_counter() + seconds
  while time.perf_counter() < end:
    steps += acting.step()
  return steps


if __name__ == '__main__':
  main()
