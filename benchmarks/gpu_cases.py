"""Cases of `gpu.py`, as functions of a device and a duration."""

import dataclasses
import functools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import acting_policies
import acting_runs
import numpy as np
import podracer
import update_speed
import vector_environments

from repertory.agents.interface import registry
from repertory.components import specs
from repertory.components.runtime import compilation

_MAX_CALLS = 1_000
_WARM_UP_CALLS = 3
_BATCH_SIZE = 32
_PPO_UNROLLS = 8

_FLOATS = specs.EnvironmentSpec(
  observations=specs.Array((17,), np.float32),
  actions=specs.BoundedArray((6,), np.float32, -1, 1),
  rewards=specs.Array((), np.float32),
  discounts=specs.BoundedArray((), np.float32, 0, 1),
)


@dataclasses.dataclass(frozen=True)
class Case:
  """A row of the table.

  Attributes:
    part: Name of the part in `--parts`.
    name: Name in the table.
    unit: Unit of the figure, a rate per second.
    measure: Returns the rate; takes the device, and the duration in seconds.
    is_small: Whether it is among the smallest cases.
  """

  part: str
  name: str
  unit: str
  measure: Callable[[str, float], float]
  is_small: bool = False


def measure_acting(
  device: str, seconds: float, *, network: str, batch_size: int
) -> float:
  """Returns the steps/s of IMPALA's policy, without environments.

  Inputs and outputs are NumPy arrays.
  """
  kind = 'pixels' if network == 'images' else 'vector'
  environments = vector_environments.KINDS[kind](batch_size, 0)
  settings = {'network': network, 'environment_ids': list(range(batch_size))}
  with compilation.on_device(device):
    actor = acting_policies.make_local_actor(settings, environments)
  timestep = environments.reset()
  actor.observe_first(timestep)
  for _ in range(_WARM_UP_CALLS):
    actor.select_action(timestep.observation)
  calls, start = 0, time.perf_counter()
  while (elapsed := time.perf_counter() - start) < seconds or not calls:
    actor.select_action(timestep.observation)
    calls += 1
  return calls * batch_size / elapsed


def measure_update(
  device: str,
  seconds: float,
  *,
  agent: str,
  observes: str,
  settings: Mapping[str, Any],
  batch_size: int,
) -> float:
  """Returns the updates/s of an agent, on batches of zeros."""
  spec = _FLOATS
  if observes != 'floats':
    environments = vector_environments.KINDS[observes](1, 0)
    spec = specs.make_environment_spec(environments)
  with compilation.on_device(device):
    times = update_speed.measure(
      registry.make_builder(agent, settings),
      batch_size,
      _MAX_CALLS,
      spec=spec,
      max_seconds=seconds,
    )
  return 1 / statistics.median(times.later)


def measure_central(
  device: str, seconds: float, *, network: str, actors: int, environments: int
) -> float:
  """Returns the steps/s of actors with central inference."""
  case = network, actors, environments
  with acting_runs.serve(*case, device=device) as service:
    acting = acting_runs.run_actors(
      *case, address=service.address, seconds=seconds
    )
  return acting['steps_per_second']


def measure_training(
  device: str,
  seconds: float,
  *,
  arguments: str,
  flags_of_devices: Sequence[str],
  steps: tuple[int, int],
) -> float:
  """Returns the environment steps/s of `repertory train`.

  Raises:
    RuntimeError: If other load made the measurement invalid.
  """
  del seconds  # The steps decide the duration.
  places = [f'--{flag}={device}' for flag in flags_of_devices]
  rate = podracer.measure([*arguments.split(), *places], steps)[1]
  if rate <= 0:
    raise RuntimeError(
      f'{steps[1]:,} steps took no longer than {steps[0]:,}: other programs '
      'must have slowed down the shorter run.'
    )
  return rate


def acting_cases() -> Iterator[Case]:
  for network in acting_policies.NETWORKS:
    for batch_size in (1, 16, 128, 1024):
      yield Case(
        'acting',
        f'{network}, B={batch_size}',
        'steps/s',
        functools.partial(
          measure_acting, network=network, batch_size=batch_size
        ),
        is_small=network == 'mlp' and batch_size == 1,
      )


def update_cases() -> Iterator[Case]:
  unrolls = {'unroll_length': 20}
  for agent, observes, own, batch_size in (
    ('dqn', 'vector', {}, _BATCH_SIZE),
    ('r2d2', 'vector', {}, _BATCH_SIZE),
    ('impala', 'vector', unrolls, _BATCH_SIZE),
    ('ppo', 'vector', {'unroll_length': 128}, _PPO_UNROLLS),
    ('sac', 'floats', {}, _BATCH_SIZE * 8),
    ('impala', 'pixels', unrolls, _BATCH_SIZE),
  ):
    for jit_compile in (True, False):
      settings = {**own, 'jit_compile': jit_compile}
      if agent != 'ppo':
        settings['batch_size'] = batch_size
      yield Case(
        'updates',
        f'{agent}, {observes}, {batch_size} items, '
        f'{"XLA" if jit_compile else "no XLA"}',
        'updates/s',
        functools.partial(
          measure_update,
          agent=agent,
          observes=observes,
          settings=settings,
          batch_size=batch_size,
        ),
        is_small=agent == 'dqn',
      )


def central_cases() -> Iterator[Case]:
  for network, actors, environments, is_small in (
    ('mlp', 1, 1, True),
    ('mlp', 4, 64, False),
    ('lstm', 4, 64, False),
    ('images', 4, 64, False),
  ):
    yield Case(
      'central',
      f'{network}, {actors} × {environments}',
      'steps/s',
      functools.partial(
        measure_central,
        network=network,
        actors=actors,
        environments=environments,
      ),
      is_small,
    )


def training_cases() -> Iterator[Case]:
  """Yields cases of `podracer.CASES`, and of sebulba on tensor environments."""
  cases = {case.key: case for case in podracer.CASES}
  learner, both = ('learner_devices',), ('learner_devices', 'inference_devices')
  anakin, sebulba = '--topology=anakin ', '--topology=sebulba '
  of_host = cases['host'].arguments.replace(
    '--env=gym:CartPole-v1', '--env=tensor:cartpole'
  )
  threads = '--num_actors=2 --environments_per_actor=64 '
  small = '--num_actors=1 --environments_per_actor=8 --config.jit_compile=false'
  for name, arguments, names, steps, is_small in (
    (
      'anakin, tiny',
      f'{anakin}{of_host} {small}',
      learner,
      (1_000, 200_000),
      True,
    ),
    ('sebulba, tiny', f'{sebulba}{of_host} {small}', both, (500, 12_000), True),
    *(
      (
        f'anakin, {cases[key].name}',
        anakin + cases[key].arguments,
        learner,
        cases[key].steps[anakin.strip()],
        False,
      )
      for key in ('impala_64', 'impala_256', 'ppo')
    ),
    (
      'anakin, IMPALA MinAtar Breakout B=64',
      f'{anakin}{cases["breakout"].arguments} --env=tensor:minatar/breakout',
      learner,
      (50_000, 350_000),
      False,
    ),
    (
      'sebulba, IMPALA CartPole, 2 × 64',
      f'{sebulba}{of_host} {threads}',
      both,
      (100_000, 400_000),
      False,
    ),
  ):
    yield Case(
      'podracers',
      name,
      'steps/s',
      functools.partial(
        measure_training,
        arguments=arguments,
        flags_of_devices=names,
        steps=steps,
      ),
      is_small,
    )


CASES = {
  'acting': acting_cases,
  'updates': update_cases,
  'central': central_cases,
  'podracers': training_cases,
}
