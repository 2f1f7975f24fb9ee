"""Speed of DQN in each topology, as ratios to the bare environment loop.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/dqn.py

Each line is measured between two runs of the bare loop, because shared
machines change their speed by the minute. Batch size 32, 4 samples per insert.
"""

import csv
import dataclasses
import os
import tempfile
import time

import numpy as np
import rich.console
import rich.table
from absl import app, flags

from repertory import launch
from repertory.environments import registry

_ENVIRONMENT = flags.DEFINE_string(
  'env', 'gym:CartPole-v1', 'The environment; its actions must be discrete.'
)
_STEPS = flags.DEFINE_integer('steps', 30_000, 'Environment steps of a run.')

_SETTINGS = {'batch_size': 32, 'samples_per_insert': 4.0}
_BARE_STEPS = 50_000


@dataclasses.dataclass(frozen=True)
class Case:
  """A way to run the same agent."""

  topology: str
  launch_type: str
  num_actors: int
  environments_per_actor: int


_CASES = (
  Case('single', 'local_mt', 1, 1),
  Case('single', 'local_mt', 1, 8),
  Case('single', 'local_mt', 1, 32),
  Case('distributed', 'local_mt', 1, 8),
  Case('distributed', 'local_mt', 2, 8),
  Case('distributed', 'local_mp', 1, 8),
  Case('distributed', 'local_mp', 2, 8),
)


def measure_bare_loop(name: str) -> float:
  """Returns steps/s of one environment with random actions and nothing else."""
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


def measure(case: Case, name: str, steps: int) -> tuple[float, float]:
  """Returns environment steps/s and learner steps/s while both go on.

  The start of nodes and the compilation of programs come before the first
  learner step, and are left out.
  """
  with tempfile.TemporaryDirectory() as directory:
    experiment = launch.make_experiment(
      'dqn',
      name,
      max_steps=steps,
      config=_SETTINGS,
      directory=directory,
      num_actors=case.num_actors,
      environments_per_actor=case.environments_per_actor,
      evaluation_episodes=0,
      checkpoint_replay=False,
    )
    launch.run(experiment, case.topology, case.launch_type, display=False)
    with open(os.path.join(directory, 'logs', 'replay.csv')) as file:
      rows = [
        {key: float(value) for key, value in row.items() if value}
        for row in csv.DictReader(file)
      ]
  # Learning and acting are both under way from here on.
  first = next(row for row in rows if row['steps'] > steps / 5)
  last = next(
    row for row in rows if row['steps'] >= max(r['steps'] for r in rows)
  )
  seconds = last['elapsed_seconds'] - first['elapsed_seconds']
  return (
    (last['steps'] - first['steps']) / seconds,
    (last['learner_steps'] - first['learner_steps']) / seconds,
  )


def main(_) -> None:
  """Prints a table."""
  table = rich.table.Table(title=f'DQN on {_ENVIRONMENT.value}')
  table.add_column('topology')
  for column in ('actors × environments', 'steps/s', 'of the bare loop',
                 'learner steps/s', 'bare loop, steps/s'):  # fmt: skip
    table.add_column(column, justify='right')
  before = measure_bare_loop(_ENVIRONMENT.value)
  for case in _CASES:
    steps, learner_steps = measure(case, _ENVIRONMENT.value, _STEPS.value)
    after = measure_bare_loop(_ENVIRONMENT.value)
    bare = (before + after) / 2
    before = after
    nodes = {'local_mt': 'threads', 'local_mp': 'processes'}[case.launch_type]
    table.add_row(
      case.topology
      if case.topology == 'single'
      else f'{case.topology}, {nodes}',
      f'{case.num_actors} × {case.environments_per_actor}',
      f'{steps:,.0f}',
      f'{steps / bare:.4f}',
      f'{learner_steps:,.0f}',
      f'{bare:,.0f}',
    )
  rich.console.Console(width=100).print(table)


if __name__ == '__main__':
  app.run(main)
