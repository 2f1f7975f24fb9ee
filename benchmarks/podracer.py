"""Speed of topologies compared with each other, mostly with `single`.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/podracer.py

Each case is trained by each topology in order, in its own process, round after
round. The cost is the difference between a short and a long run, so that start
and compilation cancel out. The table shows environment steps per second of
processor time, over all threads, and per second; and their ratios to `single`
in the same round, with minimum and maximum. A bare loop over one CartPole of
Gymnasium measures the speed of the machine.
"""

import dataclasses
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

import repertory  # noqa: F401  Before TensorFlow: see its first lines.

# isort: split
import figures
import numpy as np
import rich.console
import rich.table
from absl import app, flags

from repertory.environments.registry import registry

_CASES = flags.DEFINE_list(
  'cases', None, 'Names of the cases to run; default all.'
)
_ROUNDS = flags.DEFINE_integer('rounds', 3, 'Rounds per case.')
_SECONDS = 900  # Time limit of a run.
_BARE_STEPS = 50_000


@dataclasses.dataclass(frozen=True)
class Case:
  """Task, with the steps of each topology.

  Attributes:
    key: Name in `--cases`.
    name: Name in the table.
    arguments: Arguments of `repertory train` in each topology.
    steps: Steps of the short and of the long run, by the further arguments of a
      topology, separated by spaces.
  """

  key: str
  name: str
  arguments: str
  steps: dict[str, tuple[int, int]]


_CARTPOLE = '--env=tensor:cartpole --config.hidden_sizes=64,64 '
_IMPALA = '--agent=impala --config.unroll_length=20 '
_DQN = (
  '--agent=dqn --env=tensor:cartpole --config.hidden_sizes=120,84 '
  '--config.samples_per_insert=8 --config.n_step=1 --config.double=false '
  '--config.dueling=false '
)
_ON_64 = '--environments_per_actor=16 --num_actors=4 '


def _by_gossip(num_steps: int) -> dict[str, tuple[int, int]]:
  """Returns the topologies of a case, with several learners in processes."""
  gossip = '--topology=gossip --lp_launch_type=local_mp --num_learners='
  names = ['--topology=single', *(f'{gossip}{n}' for n in (1, 2, 4))]
  return dict.fromkeys(names, (num_steps, 5 * num_steps))


def _by_actors(*cases: tuple[str, str, int, int]) -> dict[str, tuple[int, int]]:
  """Returns topologies, launchers, and numbers of actors and environments."""
  return {
    f'--topology={topology} --lp_launch_type={launcher} '
    f'--num_actors={actors} --environments_per_actor={size}': (40_000, 200_000)
    for topology, launcher, actors, size in cases
  }


CASES = (
  Case(
    'impala_64',
    'IMPALA CartPole B=64',
    _IMPALA + _CARTPOLE + '--environments_per_actor=64 --config.batch_size=64',
    {
      '--topology=single': (100_000, 400_000),
      '--topology=anakin': (500_000, 6_500_000),
    },
  ),
  Case(
    'impala_256',
    'IMPALA CartPole B=256',
    _IMPALA
    + _CARTPOLE
    + '--environments_per_actor=256 --config.batch_size=256',
    {
      '--topology=single': (200_000, 2_200_000),
      '--topology=anakin': (500_000, 8_500_000),
    },
  ),
  Case(
    'ppo',
    'PPO CartPole B=64 T=32 4×4',
    '--agent=ppo --config.unroll_length=32 --config.num_epochs=4 '
    '--config.num_minibatches=4 --environments_per_actor=64 ' + _CARTPOLE,
    {
      '--topology=single': (100_000, 400_000),
      '--topology=anakin': (200_000, 2_200_000),
    },
  ),
  Case(
    'dqn_1',
    'DQN CartPole, uniform, B=1',
    _DQN + '--config.prioritized=false',
    {
      '--topology=single': (5_000, 45_000),
      '--topology=anakin': (20_000, 320_000),
    },
  ),
  Case(
    'dqn_16',
    'DQN CartPole, prioritized, B=16',
    _DQN + '--environments_per_actor=16',
    {
      '--topology=single': (5_000, 85_000),
      '--topology=anakin': (20_000, 320_000),
    },
  ),
  Case(
    'breakout',
    'IMPALA MinAtar Breakout B=64',
    _IMPALA
    + '--config.image_torso=minatar --config.batch_size=64 '
    + '--environments_per_actor=64 --config.jit_compile=false',
    {
      '--topology=single --env=minatar:breakout': (50_000, 150_000),
      '--topology=single --env=tensor:minatar/breakout': (50_000, 150_000),
      '--topology=anakin --env=tensor:minatar/breakout': (50_000, 350_000),
    },
  ),
  Case(
    'host',
    'IMPALA CartPole on the host, 32 environments',
    _IMPALA + '--env=gym:CartPole-v1 --config.hidden_sizes=64,64',
    {
      '--topology=single --environments_per_actor=32': (100_000, 400_000),
      '--topology=sebulba --environments_per_actor=32': (100_000, 400_000),
      '--topology=sebulba --num_actors=2 --environments_per_actor=16': (
        100_000,
        400_000,
      ),
    },
  ),
  Case(
    'pong',
    'IMPALA Pong, 2×16',
    _IMPALA
    + '--env=atari:Pong --preset=atari --num_actors=2 '
    + '--environments_per_actor=16',
    {
      '--topology=single': (2_000, 12_000),
      '--topology=sebulba': (2_000, 12_000),
    },
  ),
  Case(
    'actors_dqn',
    'DQN CartPole on the host, by actors and environments',
    '--agent=dqn --env=gym:CartPole-v1 --config.samples_per_insert=4',
    _by_actors(
      *(('single', 'local_mt', 1, size) for size in (1, 8, 32)),
      *(('distributed', 'local_mt', actors, 8) for actors in (1, 2)),
      *(('distributed', 'local_mp', actors, 8) for actors in (1, 2)),
    ),
  ),
  Case(
    'actors_impala',
    'IMPALA CartPole on the host, by actors and environments',
    _IMPALA + '--env=gym:CartPole-v1 --config.hidden_sizes=64,64',
    _by_actors(
      *(('single', 'local_mt', 1, size) for size in (8, 32, 64)),
      ('distributed', 'local_mt', 1, 32),
      *(('distributed', 'local_mp', actors, 32) for actors in (1, 2)),
    ),
  ),
  Case(
    'actors_ppo',
    'PPO CartPole on the host, by actors and environments',
    '--agent=ppo --env=gym:CartPole-v1',
    _by_actors(
      *(('single', 'local_mt', 1, size) for size in (8, 32)),
      ('distributed', 'local_mt', 1, 32),
      ('distributed', 'local_mp', 2, 32),
      ('central', 'local_mp', 2, 32),
    ),
  ),
  # Processor time leaves out Ray's processes, which are no children.
  Case(
    'ray',
    'DQN Catch, distributed, in processes and by Ray',
    '--agent=dqn --env=catch --config.samples_per_insert=4',
    _by_actors(
      *(
        ('distributed', launcher, actors, 1)
        for actors in (2, 4, 8)
        for launcher in ('local_mp', 'ray')
      )
    ),
  ),
  Case(
    'gossip_impala',
    'IMPALA CartPole, 64 environments',
    _IMPALA + _ON_64 + '--env=gym:CartPole-v1',
    _by_gossip(100_000),
  ),
  Case(
    'gossip_ppo',
    'PPO CartPole, 64 environments',
    '--agent=ppo --config.unroll_length=32 --env=gym:CartPole-v1 ' + _ON_64,
    _by_gossip(100_000),
  ),
  Case(
    'gossip_breakout',
    'IMPALA MinAtar Breakout, 64 environments',
    '--agent=impala --env=minatar:breakout --preset=minatar ' + _ON_64,
    _by_gossip(50_000),
  ),
)


def measure_bare_loop() -> float:
  """Returns steps/s of one CartPole with random actions only."""
  environment = registry.make('gym:CartPole-v1', seed=0)
  actions = np.random.default_rng(0).integers(2, size=_BARE_STEPS)
  environment.reset()
  start = time.perf_counter()
  for action in actions:
    environment.step(action)
  return _BARE_STEPS / (time.perf_counter() - start)


def measure(arguments: Sequence[str], steps: tuple[int, int]):
  """Returns environment steps per second of processor time and per second."""
  short, long = (_run([*arguments, f'--steps={n}']) for n in steps)
  num_steps = steps[1] - steps[0]
  return num_steps / (long[0] - short[0]), num_steps / (long[1] - short[1])


def _run(arguments: Sequence[str]) -> tuple[float, float]:
  """Runs a training in a process; returns its processor time and its time."""
  command = [os.path.join(os.path.dirname(sys.executable), 'repertory')]
  with tempfile.TemporaryDirectory() as directory:
    before, start = figures.children_seconds(), time.monotonic()
    subprocess.run(
      [
        *command,
        'train',
        '--preset=none',  # Unless the arguments have one.
        *arguments,
        f'--directory={directory}/run',
        '--evaluation_episodes=0',
        '--nocheckpoint_replay',
      ],
      check=True,
      capture_output=True,
      timeout=_SECONDS,
    )
    return figures.children_seconds() - before, time.monotonic() - start


def print_case(case: Case, rounds: int) -> None:
  """Measures a case and prints its table."""
  rows = {name: [] for name in case.steps}
  bare = []
  for _ in range(rounds):
    bare.append(measure_bare_loop())
    for name, steps in case.steps.items():
      arguments = [*case.arguments.split(), *name.split()]
      rows[name].append(measure(arguments, steps))
  table = rich.table.Table(
    title=f'{case.name}; bare loop {statistics.median(bare):,.0f} steps/s'
  )
  table.add_column('run by')
  for column in ('steps per CPU s', 'ratio', 'steps per s', 'ratio'):
    table.add_column(column, justify='right')
  base = next(iter(rows.values()))
  for name, found in rows.items():
    cells = []
    for i in range(2):
      cells.append(f'{statistics.median(row[i] for row in found):,.0f}')
      ratios = [row[i] / one[i] for row, one in zip(found, base)]
      cells.append(figures.spread(ratios, 1))
    table.add_row(name.replace('--', ''), *cells)
  rich.console.Console(width=120).print(table)


def main(_) -> None:
  """Prints a table for each selected case."""
  known = {case.key: case for case in CASES}
  for name in _CASES.value or known:
    if name not in known:
      raise app.UsageError(
        f'--cases must be of {", ".join(known)}; got {name!r}.'
      )
    print_case(known[name], _ROUNDS.value)


if __name__ == '__main__':
  app.run(main)
