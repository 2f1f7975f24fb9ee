"""Training speed of an agent in each topology, by the bare environment loop.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/training_speed.py --agent=impala

Each row is measured between two runs of the bare loop, because the speed of
shared machines changes by the minute.
"""

import dataclasses
import tempfile
import time
from collections.abc import Mapping
from typing import Any

import repertory  # noqa: F401  Before TensorFlow: see its first lines.

# isort: split
import figures
import numpy as np
import rich.console
import rich.table

# Before absl's `app.run`: imported inside of it, TensorFlow 2.8 creates its
# context before it enables eager execution, and functions with loops fail.
import tensorflow as tf  # noqa: F401
from absl import app, flags

from repertory import launch
from repertory.environments.registry import registry

_AGENT = flags.DEFINE_enum(
  'agent', 'dqn', ['dqn', 'impala', 'ppo'], 'The agent.'
)
_ENVIRONMENT = flags.DEFINE_string(
  'env', 'gym:CartPole-v1', 'The environment; its actions must be discrete.'
)
_STEPS = flags.DEFINE_integer('steps', 200_000, 'Environment steps of a run.')

_BARE_STEPS = 50_000
# Shorter runs are rejected: figures are logged once a second.
_MIN_SECONDS = 1.0


@dataclasses.dataclass(frozen=True)
class Case:
  """Topology with its numbers of actors and environments."""

  topology: str
  launch_type: str
  num_actors: int
  environments_per_actor: int


_SETTINGS = {
  'dqn': {'batch_size': 32, 'samples_per_insert': 4.0},
  'impala': {'unroll_length': 20, 'batch_size': 32, 'hidden_sizes': (64, 64)},
  'ppo': {},
}
# Numbers of actors and of environments per actor.
_SINGLE = {
  'dqn': ((1, 1), (1, 8), (1, 32)),
  'impala': ((1, 8), (1, 32), (1, 64)),
  'ppo': ((1, 8), (1, 32)),
}
_CASES = {
  agent: [Case('single', 'local_mt', *numbers) for numbers in _SINGLE[agent]]
  for agent in _SETTINGS
}
_CASES['dqn'] += [
  Case('distributed', launch_type, num_actors, 8)
  for launch_type in ('local_mt', 'local_mp')
  for num_actors in (1, 2)
]
_CASES['impala'] += [
  Case('distributed', 'local_mt', 1, 32),
  Case('distributed', 'local_mp', 1, 32),
  Case('distributed', 'local_mp', 2, 32),
]
_CASES['ppo'] += [
  Case('distributed', 'local_mt', 1, 32),
  Case('distributed', 'local_mp', 2, 32),
  Case('central', 'local_mp', 2, 32),
]


def measure_bare_loop(name: str) -> float:
  """Returns steps/s of one environment with random actions only."""
  environment = registry.make(name, seed=0)
  num_actions = environment.action_spec().num_values
  actions = np.random.default_rng(0).integers(num_actions, size=_BARE_STEPS)
  environment.reset()
  start = time.perf_counter()
  for action in actions:
    environment.step(action)
  seconds = time.perf_counter() - start
  environment.close()
  return _BARE_STEPS / seconds


def measure(
  case: Case,
  agent: str,
  name: str,
  steps: int,
  settings: Mapping[str, Any],
) -> tuple[float, float]:
  """Returns environment steps/s and learner steps/s while both progress.

  The start of nodes and the compilation precede the first learner step, and are
  excluded.

  Raises:
    app.UsageError: If there are too few steps to measure.
  """
  with tempfile.TemporaryDirectory() as directory:
    experiment = launch.make_experiment(
      agent,
      name,
      max_steps=steps,
      config=dict(settings),
      directory=directory,
      num_actors=case.num_actors,
      environments_per_actor=case.environments_per_actor,
      evaluation_episodes=0,
      checkpoint_replay=False,
    )
    launch.run(experiment, case.topology, case.launch_type, display=False)
    rows = figures.read_rows(directory)
  # Learning and acting are both in progress from here on.
  rows = [row for row in rows if row['steps'] > steps / 5]
  first = rows[0]
  last = next(
    row for row in rows if row['steps'] >= max(r['steps'] for r in rows)
  )
  seconds = last['elapsed_seconds'] - first['elapsed_seconds']
  if seconds < _MIN_SECONDS:
    raise app.UsageError(
      f'--steps must be large enough that those after the first fifth take '
      f'at least {_MIN_SECONDS} s; got {steps}, of which {case.topology} with '
      f'{case.num_actors} × {case.environments_per_actor} environments logged '
      f'{seconds:.1f} s. Use several times as many.'
    )
  return (
    (last['steps'] - first['steps']) / seconds,
    (last['learner_steps'] - first['learner_steps']) / seconds,
  )


def main(_) -> None:
  """Prints a table, each row measured between two runs of the bare loop."""
  agent, name, steps = _AGENT.value, _ENVIRONMENT.value, _STEPS.value
  settings = _SETTINGS[agent]
  table = rich.table.Table(title=f'{agent} on {name}, {dict(settings)}')
  table.add_column('topology')
  for column in ('actors × environments', 'steps/s', 'of the bare loop',
                 'learner steps/s', 'bare loop, steps/s'):  # fmt: skip
    table.add_column(column, justify='right')
  before = measure_bare_loop(name)
  for case in _CASES[agent]:
    rate, learner_rate = measure(case, agent, name, steps, settings)
    after = measure_bare_loop(name)
    bare = (before + after) / 2
    before = after
    nodes = {'local_mt': 'threads', 'local_mp': 'processes'}[case.launch_type]
    table.add_row(
      case.topology
      if case.topology == 'single'
      else f'{case.topology}, {nodes}',
      f'{case.num_actors} × {case.environments_per_actor}',
      f'{rate:,.0f}',
      f'{rate / bare:.4f}',
      f'{learner_rate:,.0f}',
      f'{bare:,.0f}',
    )
  rich.console.Console(width=100).print(table)


if __name__ == '__main__':
  app.run(main)
