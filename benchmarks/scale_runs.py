"""A single measurement of `scale.py`."""

import contextlib
import dataclasses
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from typing import Any

import dm_env
import numpy as np
import scale_actors
import scale_fleet
import scale_nodes
import tree

from repertory import launch
from repertory.launch.coordination import kinds
from repertory.launch.opening import resuming

COORDINATOR, REPLAY, LEARNER = (
  kind.name for kind in (kinds.COORDINATOR, kinds.REPLAY, kinds.LEARNER)
)

_WARM_UP_SECONDS = 2.0
_IDLE_SECONDS = 4.0
_OBSERVE_SECONDS = 0.25  # As the launcher does.
_MAX_RECORDED, _MIN_RECORDED = 20_000, 100
_LAST = int(dm_env.StepType.LAST)


@dataclasses.dataclass(frozen=True)
class Load:
  """Load of a measurement.

  Attributes:
    environment: Name of the environment.
    preset: Name of a preset of DQN, or None.
    config: Further settings of DQN.
    num_actors: Number of actors.
    in_a_process: Number of actors per process.
    steps_per_second: Steps of each actor per second; infinite for no limit.
    fetches: Whether actors fetch variables, with the period of DQN's settings.
    seconds: Duration of the measurement.
  """

  environment: str
  preset: str | None
  config: Mapping[str, Any]
  num_actors: int
  in_a_process: int
  steps_per_second: float
  fetches: bool
  seconds: float


def measure(load: Load) -> dict[str, float]:
  """Measures a load once.

  Returns:
    'calls' of the coordinator, 'inserts', 'fetches' and 'updates', per second;
    'fetched_bytes' per fetch; 'report_ms' and 'report_ms_p99'; per node
    'busy/<node>', the fraction of a core beyond that without actors, and
    'threads/<node>', 'files/<node>' and 'mb/<node>'; 'busy/actors'; per step
    'step_bytes', and of DQN 'samples_per_update' and 'samples_per_insert'.
  """
  with _session(load) as session, scale_nodes.started(session) as nodes:
    rollout = _record(session)
    config = session.experiment.builder.config
    fetches_per_second = 0.0
    if load.fetches:
      fetches_per_second = load.steps_per_second / config.variable_update_period
    idle = _watch(nodes, _IDLE_SECONDS)
    settings = scale_actors.Settings(
      session=session,
      rollout=rollout,
      indices=(),
      addresses=nodes.addresses,
      token=nodes.token,
      replay_address=nodes.replay_address,
      steps_per_second=load.steps_per_second,
      fetches_per_second=fetches_per_second,
      warm_up_seconds=_WARM_UP_SECONDS,
      seconds=load.seconds,
    )
    with scale_fleet.started(
      settings, load.num_actors, load.in_a_process
    ) as fleet:
      fleet.go()
      _watch(nodes, _WARM_UP_SECONDS)
      before = nodes.coordinator.status().learner_steps, fleet.busy_seconds()
      busy = _watch(nodes, load.seconds)
      after = nodes.coordinator.status().learner_steps, fleet.busy_seconds()
      resources = nodes.resources()
      found = fleet.results()
  updates, actors_busy = (
    (late - early) / load.seconds for early, late in zip(before, after)
  )
  return {
    'calls': (found['reports'] + 2 * found['leases']) / load.seconds,
    'inserts': found['steps'] / load.seconds,
    'fetches': found['fetches'] / load.seconds,
    'fetched_bytes': found['fetched_bytes'] / max(found['fetches'], 1),
    'updates': updates,
    'report_ms': 1e3 * float(np.percentile(found['report_seconds'], 50)),
    'report_ms_p99': 1e3 * float(np.percentile(found['report_seconds'], 99)),
    **{f'busy/{name}': busy[name] - idle[name] for name in busy},
    'busy/actors': actors_busy,
    **resources,
    'step_bytes': float(_size(rollout[0][1].observation)),
    'samples_per_update': config.batch_size,
    'samples_per_insert': config.samples_per_insert,
    'update_period': config.variable_update_period,
  }


@contextlib.contextmanager
def _session(load: Load) -> Iterator[Any]:
  with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
    experiment = launch.make_experiment(
      'dqn',
      load.environment,
      max_steps=10**9,
      preset=load.preset,
      config=dict(load.config),
      directory=os.path.join(directory, 'run'),
      num_actors=load.num_actors,
      environments_per_actor=1,
      evaluation_episodes=0,
      checkpoint_replay=False,
    )
    with resuming.open_session(experiment) as session:
      yield session


def _record(session: Any) -> list[tuple[Any, Any]]:
  """Returns actions and timesteps of random episodes, from FIRST to LAST."""
  environment = session.make_environments([0])
  random = np.random.default_rng(0)
  spec = session.spec.actions
  rollout = [(np.zeros([1], spec.dtype), _copy(environment.reset()))]
  while len(rollout) < _MAX_RECORDED:
    action = random.integers(spec.num_values, size=[1]).astype(spec.dtype)
    timestep = _copy(environment.step(action))
    rollout.append((action, timestep))
    if len(rollout) > _MIN_RECORDED and timestep.step_type[0] == _LAST:
      break
  environment.close()
  return rollout


def _copy(timestep: dm_env.TimeStep) -> Any:
  return tree.map_structure(np.array, timestep)


def _size(observation: Any) -> int:
  return sum(leaf.nbytes for leaf in tree.flatten(observation))


def _watch(nodes: scale_nodes.Nodes, seconds: float) -> dict[str, float]:
  """Polls like the launcher; returns the fraction of a core of each node."""
  before, start = nodes.busy_seconds(), time.monotonic()
  while time.monotonic() < start + seconds:
    nodes.coordinator.observe()
    time.sleep(_OBSERVE_SECONDS)
  took = time.monotonic() - start
  after = nodes.busy_seconds()
  return {name: (after[name] - before[name]) / took for name in before}
