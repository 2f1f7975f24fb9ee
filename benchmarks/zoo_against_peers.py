"""Learning compared with Stable-Baselines3 under rl-zoo3, and with PureJaxRL.

    .venv/bin/python benchmarks/zoo_against_peers.py --output=zoo.jsonl

Repertory trains with `--preset=auto`, Stable-Baselines3 with the settings of
rl-zoo3 (`hyperparams/ppo.yml` and `sac.yml`), which include gSDE for SAC on
MountainCarContinuous, where Repertory has correlated noise. Both train for the
same steps, with the same seeds, in one process each, with the same cores, one
by default. Repertory's checkpoints omit the replay tables; Stable-Baselines3
saves nothing.

Both are evaluated after the same steps, by the mean return of 20 greedy
episodes in ten environments, which have the same seeds on both sides and are
stepped one by one. Processor time is that of the process with all its threads
and children, imports and evaluations included, at the first evaluation that
reaches the threshold. The return is that of the policy at the end, over the
same 100 episodes, by `peers/final_evaluation.py` on both sides.

PureJaxRL's PPO runs beside PPO in `anakin`, with the settings of its examples
on both sides. It has no greedy evaluations, so the return is that of training:
after each percent of the steps, the mean over the episodes that ended in the
latest 5 % of the steps. Its script is that of a checkout, `purejaxrl` in the
folder of `--checkouts`; without one, its cases are omitted.

Each run adds a line of JSON to `--output`, and runs that it contains are
skipped, so the same command resumes. The tables of all seeds in it are printed
at the end, in Markdown, one per peer.
"""

import contextlib
import json
import math
import os
import pathlib
import signal
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import figures
import peer_processes
from absl import app, flags

from repertory.launch.results import aggregates

flags.adopt_module_key_flags(peer_processes)
_SEEDS = flags.DEFINE_integer(
  'seeds', 5, 'Number of seeds, from 0.', lower_bound=1
)
_SECONDS = flags.DEFINE_float(
  'seconds', 14_400.0, 'Time limit of a run.', lower_bound=1.0
)
_OUTPUT = flags.DEFINE_string('output', None, 'File of results.', required=True)

_LIBRARIES = {
  'repertory': 'Repertory',
  'stable_baselines3': 'Stable-Baselines3',
  'purejaxrl': 'PureJaxRL',
}
_EPISODES, _ENVIRONMENTS, _FINAL_EPISODES = 20, 10, 100
Key = tuple[str, str, int, int]  # Case, library, steps, seed.
Record = Mapping[str, Any]


class Case(NamedTuple):
  """A task in the zoos of Repertory and of Stable-Baselines3.

  Attributes:
    algorithm: Class in Stable-Baselines3; in lower case, Repertory's agent.
    environment: Id in Gymnasium.
    max_steps: Environment steps.
    evaluation_period: Steps between evaluations: a multiple of the rollouts of
      both libraries, so that as many updates have been made.
    threshold: Mean return at which the task counts as solved.
    settings: Arguments of `algorithm` in Stable-Baselines3.
    environments: Number of environments there.
    normalize: Whether observations and rewards are normalized there.
  """

  algorithm: str
  environment: str
  max_steps: int
  evaluation_period: int
  threshold: float
  settings: Mapping[str, Any]
  environments: int = 1
  normalize: bool = False

  peer = 'stable_baselines3'

  @property
  def title(self) -> str:
    name = f'{self.algorithm}, {self.environment}'
    if self.settings.get('use_sde'):
      name += ' (gSDE in Stable-Baselines3, correlated noise in Repertory)'
    return name

  def settings_of(self, library: str, seed: int) -> dict[str, Any]:
    """Returns the settings of the library's script."""
    first = 10_000 * (seed + 1)  # No seed of a training environment.
    settings: dict[str, Any] = {
      'evaluation_period': self.evaluation_period,
      'evaluation_episodes': _EPISODES,
      'evaluation_seeds': [first + i for i in range(_ENVIRONMENTS)],
      'final_seeds': [first + 1_000 + i for i in range(_FINAL_EPISODES)],
    }
    if library == 'repertory':
      return settings | {
        'agent': self.algorithm.lower(),
        'environment': f'gym:{self.environment}',
        'preset': 'auto',
        'settings': {},
      }
    return settings | {
      'algorithm': self.algorithm,
      'environment': self.environment,
      'environments': self.environments,
      'normalize': self.normalize,
      'settings': self.settings,
    }


class CompiledCase(NamedTuple):
  """A task of PPO in PureJaxRL, and in Repertory's `anakin`.

  Both have unrolls of 128 steps, 4 epochs, and a learning rate that decays
  linearly to 0.

  Attributes:
    game: Id in gymnax.
    environment: Name of the same environment in Repertory.
    max_steps: Environment steps.
    threshold: Mean return of training at which the task counts as solved.
    environments: Number of environments.
    num_minibatches: Number of minibatches per epoch.
    learning_rate: Initial learning rate.
    activation: Activation function in PureJaxRL.
    network: Import path of a function that makes Repertory's network; '' for
      PPO's own, which has tanh.
  """

  game: str
  environment: str
  max_steps: int
  threshold: float
  environments: int
  num_minibatches: int
  learning_rate: float
  activation: str = 'tanh'
  network: str = ''

  peer = 'purejaxrl'

  @property
  def title(self) -> str:
    return f'PPO, {self.game}'

  def settings_of(self, library: str, seed: int) -> dict[str, Any]:
    """Returns the settings of the library's script."""
    del seed
    if library == 'purejaxrl':
      return {
        'reports_returns': True,
        'ENV_NAME': self.game,
        'NUM_ENVS': self.environments,
        'NUM_STEPS': 128,
        'UPDATE_EPOCHS': 4,
        'NUM_MINIBATCHES': self.num_minibatches,
        'LR': self.learning_rate,
        'ANNEAL_LR': True,
        'ACTIVATION': self.activation,
      }
    return {
      'reports_returns': True,
      'agent': 'ppo',
      'environment': self.environment,
      'environments': self.environments,
      'topology': 'anakin',
      'settings': {
        'unroll_length': 128,
        'batch_size': self.environments,
        'num_epochs': 4,
        'num_minibatches': self.num_minibatches,
        'learning_rate': f'linear({self.learning_rate},0)',
        'value_clip_epsilon': 0.2,
      },
      **({'network': self.network} if self.network else {}),
    }


# Thresholds are those of Gymnasium's registry, `reward_threshold`. Pendulum has
# none: there it is two standard errors of an evaluation below -157 ± 89, the
# return and its deviation over episodes in rl-zoo3's benchmark.md. MinAtar's is
# the return of PPO in gymnax's README.
CASES: dict[str, Case | CompiledCase] = {
  'ppo_cartpole': Case(
    'PPO', 'CartPole-v1', 100_000, 2_048, 475.0,
    {
      'n_steps': 32, 'batch_size': 256, 'gae_lambda': 0.8, 'gamma': 0.98,
      'n_epochs': 20, 'ent_coef': 0.0, 'learning_rate': 'lin_0.001',
      'clip_range': 'lin_0.2',
    },
    environments=8,
  ),
  'ppo_acrobot': Case(
    'PPO', 'Acrobot-v1', 1_000_000, 16_384, -100.0,
    {
      'n_steps': 256, 'gae_lambda': 0.94, 'gamma': 0.99, 'n_epochs': 4,
      'ent_coef': 0.0,
    },
    environments=16, normalize=True,
  ),
  'ppo_mountain_car': Case(
    'PPO', 'MountainCar-v0', 1_000_000, 16_384, -110.0,
    {
      'n_steps': 16, 'gae_lambda': 0.98, 'gamma': 0.99, 'n_epochs': 4,
      'ent_coef': 0.0,
    },
    environments=16, normalize=True,
  ),
  'ppo_lunar_lander': Case(
    'PPO', 'LunarLander-v3', 1_000_000, 32_768, 200.0,
    {
      'n_steps': 1024, 'batch_size': 64, 'gae_lambda': 0.98, 'gamma': 0.999,
      'n_epochs': 4, 'ent_coef': 0.01,
    },
    environments=16,
  ),
  'sac_pendulum': Case(
    'SAC', 'Pendulum-v1', 20_000, 1_000, -200.0, {'learning_rate': 1e-3}
  ),
  'sac_mountain_car': Case(
    'SAC', 'MountainCarContinuous-v0', 50_000, 2_048, 90.0,
    {
      'learning_rate': 3e-4, 'buffer_size': 50_000, 'batch_size': 512,
      'ent_coef': 0.1, 'train_freq': 32, 'gradient_steps': 32,
      'gamma': 0.9999, 'tau': 0.01, 'learning_starts': 0, 'use_sde': True,
      'policy_kwargs': {'log_std_init': -3.67, 'net_arch': [64, 64]},
    },
  ),
  # The settings of its ppo.py.
  'anakin_cartpole': CompiledCase(
    'CartPole-v1', 'tensor:cartpole', 500_000, 475.0,
    environments=4, num_minibatches=4, learning_rate=2.5e-4,
  ),
  # The settings of its examples/brax_minatar.ipynb.
  'anakin_breakout': CompiledCase(
    'Breakout-MinAtar', 'purejaxrl_parts:Breakout', 10_000_000, 28.0,
    environments=64, num_minibatches=8, learning_rate=5e-3, activation='relu',
    network='purejaxrl_parts:make_relu_network',
  ),
}  # fmt: skip


def steps_of(name: str) -> int:
  """Returns the environment steps of a case."""
  return round(CASES[name].max_steps * peer_processes.SCALE.value)


def run(
  name: str, library: str, seed: int, machine: peer_processes.Machine
) -> Record:
  """Trains and evaluates in a process of the library.

  Returns:
    `evaluations`, each of steps, mean return and processor seconds; `returns`
    of the policy at the end; and `steps`.

  Raises:
    CannotRunError: If it fails or exceeds the time limit.
  """
  settings = {'seed': seed, **CASES[name].settings_of(library, seed)}
  report = peer_processes.run(library, settings, steps_of(name), machine).report
  found = {key: report[key] for key in ('steps', 'evaluations', 'returns')}
  if not all(found.values()):
    raise peer_processes.CannotRunError('It reported no return.')
  return found


def read(path: pathlib.Path) -> dict[Key, Record]:
  """Returns the records of a file of results; none if it does not exist."""
  lines = path.read_text().splitlines() if path.exists() else []
  records = map(json.loads, lines)
  return {
    (one['case'], one['library'], one['max_steps'], one['seed']): one
    for one in records
  }


def find_missing(names: Sequence[str], path: pathlib.Path) -> list[Key]:
  """Returns the runs of the cases that the file of results lacks."""
  done = read(path)
  keys = [
    (name, library, steps_of(name), seed)
    for seed in range(_SEEDS.value)
    for name in names
    for library in ('repertory', CASES[name].peer)
  ]
  return [key for key in keys if key not in done]


def run_missing(
  missing: Sequence[Key], machine: peer_processes.Machine, path: pathlib.Path
) -> int:
  """Makes runs, and appends their results to the file.

  Failed ones are printed, and tried again by the next command.

  Returns:
    The number of those that failed.
  """
  num_failed = 0
  for library in dict.fromkeys(key[1] for key in missing):
    with contextlib.suppress(peer_processes.CannotRunError):
      print(library, peer_processes.versions(library, machine), flush=True)
  for name, library, steps, seed in missing:
    title = f'{name}, {_LIBRARIES[library]}, seed {seed}'
    try:
      found = run(name, library, seed, machine)
    except peer_processes.CannotRunError as error:
      print(f'Failed: {title}: {error}', flush=True)
      num_failed += 1
      continue
    record = {
      'case': name, 'library': library, 'max_steps': steps, 'seed': seed,
      **found,
    }  # fmt: skip
    with path.open('a') as file:
      file.write(json.dumps(record) + '\n')
    mean_return = statistics.mean(found['returns'])
    cpu_seconds = found['evaluations'][-1][2]
    print(f'{title}: {mean_return:.1f}, {cpu_seconds:.1f} CPU s', flush=True)
  return num_failed


def crossing(record: Record, threshold: float) -> tuple[float, float]:
  """Returns the processor seconds and steps until a threshold is reached.

  Infinite if no evaluation reaches it.
  """
  reached = (
    (seconds, steps)
    for steps, mean_return, seconds in record['evaluations']
    if mean_return >= threshold
  )
  return next(reached, (math.inf, math.inf))


def make_row(name: str, records: Mapping[Key, Record]) -> list[str]:
  """Returns the cells of a case, over the seeds of each library."""
  case, max_steps = CASES[name], steps_of(name)
  returns, costs, medians, totals = [], [], [], []
  for library in ('repertory', case.peer):
    chosen = [
      record for key, record in records.items()
      if key[:3] == (name, library, max_steps)
    ]  # fmt: skip
    if not chosen:
      for column in (returns, costs, totals):
        column.append('–')
      medians.append(math.inf)
      continue
    means = [statistics.mean(record['returns']) for record in chosen]
    low, high = aggregates.bootstrap_interval(means, aggregates.mean)
    interval = '' if math.isnan(low) else f' ({low:.1f} to {high:.1f})'
    returns.append(f'{statistics.mean(means):.1f}{interval}')
    reached = [crossing(record, case.threshold) for record in chosen]
    seconds, steps = (statistics.median(values) for values in zip(*reached))
    medians.append(seconds)
    cost = f'{seconds:.1f} s, {steps:,.0f} steps, '
    num_reached = sum(math.isfinite(one) for one, _ in reached)
    costs.append(
      f'{cost if math.isfinite(seconds) else ""}{num_reached} of {len(reached)}'
    )
    total = statistics.median(one['evaluations'][-1][2] for one in chosen)
    totals.append(f'{total:.1f} s')
  are_finite = all(map(math.isfinite, medians))
  ratio = f'{medians[0] / medians[1]:.2f}' if are_finite else '–'
  return [
    case.title, f'{max_steps:,}', *returns, f'{case.threshold:g}', *costs,
    ratio, *totals,
  ]  # fmt: skip


def print_table(
  peer: str, names: Sequence[str], records: Mapping[Key, Record]
) -> None:
  """Prints the cases of a peer in Markdown."""
  pair = [_LIBRARIES[library] for library in ('repertory', peer)]
  headings = [
    'Task', 'Steps', *(f'Return, {name}' for name in pair), 'Threshold',
    *(f'CPU time to threshold, {name}' for name in pair), 'Ratio',
    *(f'Whole run, {name}' for name in pair),
  ]  # fmt: skip
  rows = [headings, ['---'] * len(headings)]
  rows += [make_row(name, records) for name in names]
  print('', *(f'| {" | ".join(row)} |' for row in rows), sep='\n')


def main(arguments: Sequence[str]) -> int:
  """Makes the missing runs, with their machine, and prints the tables.

  Returns 1 if runs failed.
  """
  default = [
    name for name, case in CASES.items()
    if peer_processes.CHECKOUTS.value or case.peer != 'purejaxrl'
  ]  # fmt: skip
  names = peer_processes.choose_cases(arguments, list(CASES), default)
  by_peer: dict[str, list[str]] = {}
  for name in names:
    by_peer.setdefault(CASES[name].peer, []).append(name)
  machine = peer_processes.make_machine(_SECONDS.value)
  signal.signal(signal.SIGTERM, signal.default_int_handler)  # Ends a run, too.
  path = pathlib.Path(_OUTPUT.value)
  if not path.parent.is_dir():
    raise app.UsageError(
      f'--output must be in an existing folder, got {path}. Create '
      f'{path.parent}.'
    )
  missing = find_missing(names, path)
  if jax := sorted({key[0] for key in missing if key[1] == 'purejaxrl'}):
    try:
      peer_processes.find_scripts('purejaxrl', machine)
    except peer_processes.CannotRunError as error:
      raise app.UsageError(
        '--checkouts must be a folder with a checkout `purejaxrl` for the '
        f'cases {", ".join(jax)}, but {error}.'
      ) from error
  num_failed = 0
  if missing:
    print(f'{os.cpu_count()} cores of {figures.processor()}', flush=True)
    try:
      num_failed = run_missing(missing, machine, path)
    except KeyboardInterrupt:
      print('Interrupted. The same command makes the other runs.')
      return 130
  records = read(path)
  for peer, chosen in by_peer.items():
    print_table(peer, chosen, records)
  return int(num_failed > 0)


if __name__ == '__main__':
  app.run(main)
