"""Speed of training beside that of other libraries, at the same work.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/against_peers.py

Each peer is installed into a virtual environment of its own under
`build/peers/`, and runs right before and after ours; the ratio is to the mean
of the two. All have a batch of environments in one process, and
Stable-Baselines3 has one thread for its networks, with which it is fastest. An
agent of dm-acme in one process has one environment: the cases are with as many
of ours, and with 16, which changes nothing in the number of updates per step.
"""

import json
import pathlib
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
_HERE = pathlib.Path(__file__).resolve().parent
_PEERS = _HERE.parent / 'build' / 'peers'

# What each peer needs; its script is `peers/<name>_peer.py`.
_REQUIREMENTS = {
  'stable_baselines3': (
    'stable-baselines3==2.7.0',
    'gymnasium[atari]==1.2.3',
    'opencv-python-headless',
  ),
  # The newest that fit dm-acme; it asks for TensorFlow with CUDA. Its adders
  # need this Reverb: 0.7.2 lacks an argument of theirs.
  'dm_acme': (
    'dm-acme==0.4.0',
    'dm-launchpad==0.5.0',
    'dm-reverb==0.7.0',
    'dm-sonnet==2.0.2',
    'gym==0.25.2',
    'jax==0.4.13',
    'jaxlib==0.4.13',
    'numpy==1.23.5',
    'protobuf==3.19.6',
    'setuptools<70',
    'tensorflow-cpu==2.8.4',
    'tensorflow-probability==0.15.0',
    'trfl==1.2.0',
  ),
}
_TIMEOUT_SECONDS = 1800.0


class Case(NamedTuple):
  """The same work in both libraries.

  Attributes:
    agent: Ours.
    environment: Its name with us.
    environments: How many of ours.
    settings: What our agent is given.
    steps: Environment steps of our run.
    peer: The other library.
    peer_environments: How many of the peer's.
    peer_settings: What its script is told.
    peer_steps: Environment steps of each of its runs.
    mark: The ratio to reach.
  """

  agent: str
  environment: str
  environments: int
  settings: Mapping[str, Any]
  steps: int
  peer: str
  peer_environments: int
  peer_settings: Mapping[str, Any]
  peer_steps: int
  mark: float


def _beside_acme(
  name: str, case: Case, steps_of_16: int, mark_of_16: float
) -> dict[str, Case]:
  """Names a case with one environment, and the same with 16 of ours."""
  with_16 = case._replace(environments=16, steps=steps_of_16, mark=mark_of_16)
  return {f'{name}_1': case, f'{name}_16': with_16}


def _d4pg_beside_acme(hidden_sizes: tuple[int, ...]) -> Case:
  """Has layers of these sizes in both libraries."""
  return Case(
    'd4pg',
    'gym:Pendulum-v1',
    1,
    {'samples_per_insert': 32.0, 'hidden_sizes': hidden_sizes},
    10_000,
    'dm_acme',
    1,
    {
      'algorithm': 'D4PG',
      'environment': 'Pendulum-v1',
      'hidden_sizes': hidden_sizes,
      'settings': {},
    },
    6_000,
    3.0,
  )


CASES = {
  # 128 steps of 8 environments, 4 epochs of 4 minibatches, tanh and 64 × 64.
  'ppo_cartpole': Case(
    'ppo',
    'gym:CartPole-v1',
    8,
    {'unroll_length': 128, 'num_epochs': 4, 'num_minibatches': 4},
    200_000,
    'stable_baselines3',
    8,
    {
      'algorithm': 'PPO',
      'environment': 'CartPole-v1',
      'settings': {'n_steps': 128, 'n_epochs': 4, 'batch_size': 256},
    },
    200_000,
    1.0,
  ),
  # 5 steps of 64 environments are a batch; 64 × 64, shared by policy and value.
  'impala_cartpole': Case(
    'impala',
    'gym:CartPole-v1',
    64,
    {'unroll_length': 5, 'batch_size': 64, 'hidden_sizes': (64, 64)},
    400_000,
    'stable_baselines3',
    64,
    {
      'algorithm': 'A2C',
      'environment': 'CartPole-v1',
      'settings': {'n_steps': 5},
      'shared_sizes': (64, 64),
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
    20_000,
    'stable_baselines3',
    16,
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
    20_000,
    'stable_baselines3',
    1,
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
  # dm-acme's own settings.
  **_beside_acme(
    'dqn_cartpole_acme',
    Case(
      'dqn',
      'gym:CartPole-v1',
      1,
      {
        'batch_size': 256,
        'hidden_sizes': (50, 50),
        'dueling': False,
        'n_step': 5,
        'samples_per_insert': 32.0,
        'min_replay_size': 1_000,
      },
      40_000,
      'dm_acme',
      1,
      {
        'algorithm': 'DQN',
        'environment': 'CartPole-v1',
        'hidden_sizes': (50, 50),
        'settings': {},
      },
      6_000,
      3.0,
    ),
    steps_of_16=120_000,
    mark_of_16=3.0,
  ),
  # Those of 256 and 256, where arithmetic takes most of the time, and smaller.
  **_beside_acme(
    'd4pg_pendulum_acme',
    _d4pg_beside_acme((256, 256)),
    steps_of_16=16_000,
    mark_of_16=3.0,
  ),
  **_beside_acme(
    'd4pg_small_pendulum_acme',
    _d4pg_beside_acme((64, 64)),
    steps_of_16=40_000,
    mark_of_16=3.0,
  ),
  **_beside_acme(
    'impala_cartpole_acme',
    Case(
      'impala',
      'gym:CartPole-v1',
      1,
      {
        'unroll_length': 20,
        'batch_size': 16,
        'hidden_sizes': (50, 50),
        'core': 'lstm',
        'core_size': 20,
      },
      40_000,
      'dm_acme',
      1,
      {
        'algorithm': 'IMPALA',
        'environment': 'CartPole-v1',
        'hidden_sizes': (50, 50),
        'settings': {
          'sequence_length': 20,
          'sequence_period': 20,
          'batch_size': 16,
          'core_size': 20,
        },
      },
      8_000,
      1.0,
    ),
    steps_of_16=400_000,
    mark_of_16=20.0,
  ),
}


def install(peer: str) -> str:
  """Makes the peer's virtual environment; returns its Python."""
  directory = _PEERS / peer
  python = str(directory / 'bin' / 'python')
  done = directory / '.done'
  requirements = '\n'.join(_REQUIREMENTS[peer])
  if not done.exists() or done.read_text() != requirements:
    print(f'Installing {peer} into {directory} …', flush=True)
    venv.create(directory, with_pip=True, clear=True)
    subprocess.run(
      [python, '-m', 'pip', 'install', '--quiet', *_REQUIREMENTS[peer]],
      check=True,
    )
    done.write_text(requirements)
  return python


def measure_peer(python: str, case: Case) -> float:
  """Returns the peer's environment steps per second."""
  settings = {
    **case.peer_settings,
    'environments': case.peer_environments,
    'steps': case.peer_steps,
  }
  result = subprocess.run(
    [
      python,
      str(_HERE / 'peers' / f'{case.peer}_peer.py'),
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
  for column in ('case', 'B, ours / peer', 'ours', 'peer', 'ratio', 'mark'):
    table.add_column(column, justify='right')
  for name in names:
    case = CASES[name]
    python = install(case.peer)
    before = measure_peer(python, case)
    ours = measure_ours(case)
    peer = (before + measure_peer(python, case)) / 2
    row = (
      name,
      f'{case.environments} / {case.peer_environments}',
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
