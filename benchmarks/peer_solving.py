"""Cost of solving a task, in several libraries with the same settings.

The settings are those that RL Baselines3 Zoo has for Stable-Baselines3
(https://github.com/DLR-RM/rl-baselines3-zoo, `hyperparams/<algorithm>.yml`). A
task is solved when the mean return over 20 episodes with greedy actions, in
separate evaluation environments, reaches its threshold; all libraries evaluate
with the same period. The cost of evaluation is measured in the training
process, over all of its threads, and subtracted. Everything else counts,
imports included.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import figures
import peer_processes
import peer_runs
import rich.console
import rich.table

_EPISODES = 20


class Task(NamedTuple):
  """Task to be solved.

  Attributes:
    title: Description of the task.
    threshold: The mean return to reach.
    period: Environment steps between evaluations.
    steps: Environment steps in which it must be solved.
    ours: Run of Repertory.
    peers: Runs of other libraries.
  """

  title: str
  threshold: float
  period: int
  steps: int
  ours: peer_runs.Run
  peers: tuple[peer_runs.Run, ...]


def _make_task(
  title: str,
  threshold: float,
  period: int,
  steps: int,
  agents: tuple[str, str],
  environment: str,
  settings: tuple[Mapping[str, Any], Mapping[str, Any]],
  environments: int = 1,
) -> Task:
  """Returns a task; agents and settings are pairs, ours and the peers'."""
  mine, theirs = settings
  lengths = steps, steps
  return Task(
    title,
    threshold,
    period,
    steps,
    peer_runs.ours(
      'ours', agents[0], f'gym:{environment}', mine, lengths,
      environments=environments,
    ),
    tuple(
      peer_runs.baselines(
        library, agents[1], environment, theirs, lengths,
        environments=environments,
      )
      for library in ('stable_baselines3', 'sbx')
    ),
  )  # fmt: skip


# hyperparams/ppo.yml: 8 environments, 1e5 steps, n_steps 32, batch_size 256,
# gae_lambda 0.8, gamma 0.98, n_epochs 20, ent_coef 0.0, learning_rate
# lin_0.001, clip_range lin_0.2. Both fall to 0 over the 390 batches of the run.
_PPO = _make_task(
  'PPO, CartPole',
  475.0,
  2_000,
  100_000,
  ('ppo', 'PPO'),
  'CartPole-v1',
  (
    {
      'unroll_length': 32,
      'num_epochs': 20,
      'num_minibatches': 1,
      'lambda_': 0.8,
      'discount': 0.98,
      'entropy_cost': 0.0,
      'learning_rate': 1e-3,
      'clip_epsilon': 0.2,
      'anneal_learner_steps': 390,
    },
    {
      'n_steps': 32,
      'batch_size': 256,
      'gae_lambda': 0.8,
      'gamma': 0.98,
      'n_epochs': 20,
      'ent_coef': 0.0,
      'learning_rate': 'linear 0.001',
      'clip_range': 'linear 0.2',
    },
  ),
  environments=8,
)
# hyperparams/dqn.yml: 5e4 steps, learning_rate 2.3e-3, batch_size 64,
# buffer_size 100000, learning_starts 1000, gamma 0.99, target_update_interval
# 10, train_freq 256, gradient_steps 128, exploration_fraction 0.16,
# exploration_final_eps 0.04, net_arch [256, 256]. The target network is not
# updated between the 128 gradient steps, so our target update period is 128.
_DQN = _make_task(
  'DQN, CartPole',
  400.0,
  1_024,
  50_000,
  ('dqn', 'DQN'),
  'CartPole-v1',
  (
    {
      'learning_rate': 2.3e-3,
      'adam_epsilon': 1e-8,
      'batch_size': 64,
      'max_replay_size': 100_000,
      'min_replay_size': 1_000,
      'discount': 0.99,
      'target_update_period': 128,
      'samples_per_insert': 32.0,
      'num_sgd_steps_per_step': 128,
      'epsilon_anneal_steps': 8_000,
      'epsilon_base': 0.04,
      'epsilon_exponent': 0.0,
      'hidden_sizes': (256, 256),
      'dueling': False,
      'double': False,
      'prioritized': False,
      'n_step': 1,
    },
    {
      'learning_rate': 2.3e-3,
      'batch_size': 64,
      'buffer_size': 100_000,
      'learning_starts': 1_000,
      'gamma': 0.99,
      'target_update_interval': 10,
      'train_freq': 256,
      'gradient_steps': 128,
      'exploration_fraction': 0.16,
      'exploration_final_eps': 0.04,
      'policy_kwargs': {'net_arch': [256, 256]},
    },
  ),
)
# hyperparams/sac.yml: 20000 steps, learning_rate 1e-3. All else is the default
# of Stable-Baselines3: batches of 256, 100 random steps and then an update
# every step, gamma 0.99, tau 0.005.
_SAC = _make_task(
  'SAC, Pendulum',
  -200.0,
  500,
  20_000,
  ('sac', 'SAC'),
  'Pendulum-v1',
  (
    {
      'learning_rate': 1e-3,
      'temperature_learning_rate': 1e-3,
      'batch_size': 256,
      'min_replay_size': 100,
      'num_random_steps': 100,
    },
    {'learning_rate': 1e-3},
  ),
)

TASKS = {'ppo_cartpole': _PPO, 'dqn_cartpole': _DQN, 'sac_pendulum': _SAC}


class Solved(NamedTuple):
  """Cost until solved; infinite if the task was not solved."""

  cpu_seconds: float
  seconds: float
  steps: float


def solve(
  task: Task,
  run: peer_runs.Run,
  seed: int,
  machine: peer_processes.Machine,
) -> Solved:
  """Trains until the task is solved or the steps are used up.

  Raises:
    CannotRunError: If it fails or exceeds the time limit.
  """
  settings = {
    **run.settings,
    'seed': seed,
    'solve': {
      'threshold': task.threshold,
      'period': task.period,
      'episodes': _EPISODES,
    },
  }
  report = peer_processes.run(run.library, settings, task.steps, machine).report
  if 'solved' not in report:
    return Solved(math.inf, math.inf, math.inf)
  costs = report['solved']
  return Solved(costs['cpu_seconds'], costs['seconds'], report['steps'])


def print_task(
  task: Task, seeds: Sequence[int], machine: peer_processes.Machine
) -> None:
  """Runs all libraries on a task, seed after seed, and prints a table."""
  print(f'{task.title} …', flush=True)
  runs = (task.ours, *task.peers)
  found: dict[str, list[Solved]] = {run.name: [] for run in runs}
  left_out = {}
  for seed in seeds:
    for run in runs:
      if run.name in left_out:
        continue
      try:
        one = solve(task, run, seed, machine)
      except peer_processes.CannotRunError as error:
        if run is task.ours:
          raise
        left_out[run.name] = str(error)
        continue
      found[run.name].append(one)
      print(
        f'{run.name}, seed {seed}: {one.cpu_seconds:.1f} CPU s, '
        f'{one.steps:,.0f} steps',
        flush=True,
      )
  table = _tabulate(task, [run for run in runs if found[run.name]], found)
  rich.console.Console(width=140).print(table)
  for name, reason in left_out.items():
    print(f'Omitted: {name}, {reason}', flush=True)


def _tabulate(
  task: Task,
  runs: Sequence[peer_runs.Run],
  found: Mapping[str, Sequence[Solved]],
) -> rich.table.Table:
  """Returns a table of medians over seeds, with minimum and maximum."""
  table = rich.table.Table(
    title=f'{task.title}: until the mean of {_EPISODES} episodes is '
    f'{task.threshold:g}, evaluated every {task.period} steps'
  )
  table.add_column('run by')
  for column in ('solved', 'CPU s', 's', 'steps', 'theirs / ours, CPU s'):
    table.add_column(column, justify='right')
  base = statistics.median(one.cpu_seconds for one in found[task.ours.name])
  for run in runs:
    solved = found[run.name]
    ratio = statistics.median(one.cpu_seconds for one in solved) / base
    table.add_row(
      run.name,
      f'{sum(math.isfinite(one.steps) for one in solved)} of {len(solved)}',
      figures.spread([one.cpu_seconds for one in solved], 1),
      figures.spread([one.seconds for one in solved], 1),
      figures.spread([one.steps for one in solved], 0),
      '' if run is task.ours else f'{ratio:.2f}',
    )
  return table
