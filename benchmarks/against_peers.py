"""Speed of training beside that of other libraries, at the same work.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/against_peers.py

Each peer is installed into a virtual environment of its own under
`build/peers/`, and runs right before and after ours; the ratio is to the mean
of the two. All have a batch of environments in one process and one thread for
the networks of the peer.
"""

import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from typing import Any, NamedTuple

import rich.console
import rich.table
import training_speed
from absl import app, flags

_CASES_FLAG = flags.DEFINE_list('cases', None, 'Names of cases; default: all.')
_HERE = os.path.dirname(os.path.abspath(__file__))
_PEERS = os.path.join(os.path.dirname(_HERE), 'build', 'peers')

# What each peer needs; its script is `peers/<name>_peer.py`.
_REQUIREMENTS = {
  'stable_baselines3': (
    'stable-baselines3==2.7.0',
    'gymnasium[atari]==1.2.3',
    'opencv-python-headless',
  ),
}
_TIMEOUT_SECONDS = 1800.0


class Case(NamedTuple):
  """The same work in both libraries.

  Attributes:
    agent: Ours.
    environment: Its name with us.
    environments: How many.
    settings: Of our agent.
    peer: The other library.
    peer_settings: What its script is told.
    steps: Environment steps of each run.
    mark: The ratio to reach.
  """

  agent: str
  environment: str
  environments: int
  settings: Mapping[str, Any]
  peer: str
  peer_settings: Mapping[str, Any]
  steps: int
  mark: float


CASES = {
  # 128 steps of 8 environments, 4 epochs of 4 minibatches, tanh and 64 × 64.
  'ppo_cartpole': Case(
    'ppo',
    'gym:CartPole-v1',
    8,
    {'unroll_length': 128, 'num_epochs': 4, 'num_minibatches': 4},
    'stable_baselines3',
    {
      'algorithm': 'PPO',
      'environment': 'CartPole-v1',
      'settings': {'n_steps': 128, 'n_epochs': 4, 'batch_size': 256},
    },
    200_000,
    1.0,
  ),
  # 5 steps of 64 environments are a batch.
  'impala_cartpole': Case(
    'impala',
    'gym:CartPole-v1',
    64,
    {'unroll_length': 5, 'batch_size': 64, 'hidden_sizes': (64, 64)},
    'stable_baselines3',
    {
      'algorithm': 'A2C',
      'environment': 'CartPole-v1',
      'settings': {'n_steps': 5},
    },
    400_000,
    1.0,
  ),
  # 5 steps of 16 environments are a batch, of the convolutions of Nature DQN.
  'impala_pong': Case(
    'impala',
    'atari:Pong',
    16,
    {
      'unroll_length': 5,
      'batch_size': 16,
      'hidden_sizes': (512,),
      'max_abs_reward': 1.0,
      'jit_compile': False,
    },
    'stable_baselines3',
    {
      'algorithm': 'A2C',
      'environment': 'ALE/Pong-v5',
      'settings': {'n_steps': 5},
    },
    20_000,
    1.5,
  ),
  'dqn_cartpole': Case(
    'dqn',
    'gym:CartPole-v1',
    1,
    {
      'batch_size': 64,
      'hidden_sizes': (64, 64),
      'dueling': False,
      'prioritized': False,
      'n_step': 1,
      'samples_per_insert': 16.0,
    },
    'stable_baselines3',
    {
      'algorithm': 'DQN',
      'environment': 'CartPole-v1',
      'settings': {
        'batch_size': 64,
        'learning_starts': 200,
        'train_freq': 4,
      },
    },
    20_000,
    1.0,
  ),
}


def install(peer: str) -> str:
  """Makes the peer's virtual environment; returns its Python."""
  directory = os.path.join(_PEERS, peer)
  python = os.path.join(directory, 'bin', 'python')
  done = os.path.join(directory, '.done')
  if not os.path.exists(done):
    print(f'Installing {peer} into {directory} …', flush=True)
    venv.create(directory, with_pip=True, clear=True)
    subprocess.run(
      [python, '-m', 'pip', 'install', '--quiet', *_REQUIREMENTS[peer]],
      check=True,
    )
    with open(done, 'w'):
      pass
  return python


def measure_peer(python: str, case: Case) -> float:
  """Returns the peer's environment steps per second."""
  settings = {
    **case.peer_settings,
    'environments': case.environments,
    'steps': case.steps,
  }
  result = subprocess.run(
    [
      python,
      os.path.join(_HERE, 'peers', f'{case.peer}_peer.py'),
      json.dumps(settings),
    ],
    stdout=subprocess.PIPE,
    text=True,
    check=True,
    timeout=_TIMEOUT_SECONDS,
  )
  return json.loads(result.stdout.splitlines()[-1])['steps_per_second']


def measure_ours(case: Case) -> float:
  """Returns our environment steps per second."""
  rate, _ = training_speed.measure(
    training_speed.Case('single', 'local_mt', 1, case.environments),
    case.agent,
    case.environment,
    case.steps,
    case.settings,
  )
  return rate


def main(_) -> None:
  """Prints a table."""
  names = _CASES_FLAG.value or list(CASES)
  unknown = sorted(set(names) - set(CASES))
  if unknown:
    sys.exit(f'--cases must be among {sorted(CASES)}, got {unknown}.')
  table = rich.table.Table(title='Environment steps per second, learning')
  for column in ('case', 'environments', 'ours', 'peer', 'ratio', 'mark'):
    table.add_column(column, justify='right')
  for name in names:
    case = CASES[name]
    python = install(case.peer)
    before = measure_peer(python, case)
    ours = measure_ours(case)
    peer = (before + measure_peer(python, case)) / 2
    row = (
      name,
      str(case.environments),
      f'{ours:,.0f}',
      f'{case.peer} {case.peer_settings["algorithm"]} {peer:,.0f}',
      f'{ours / peer:.2f}',
      f'{case.mark:g}',
    )
    table.add_row(*row)
    print(' | '.join(row), flush=True)
  rich.console.Console(width=100).print(table)


if __name__ == '__main__':
  app.run(main)
