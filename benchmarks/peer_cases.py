"""Identical training tasks for several libraries."""

from collections.abc import Mapping
from typing import Any, NamedTuple

CARTPOLE, PENDULUM = 'CartPole-v1', 'Pendulum-v1'


class Run(NamedTuple):
  """A run of one library.

  Attributes:
    name: Name in the tables.
    library: Name of the library in `peer_processes`.
    settings: Settings of its script, besides the steps.
    steps: Steps of the short run, which includes the first updates, and of the
      long one.
  """

  name: str
  library: str
  settings: Mapping[str, Any]
  steps: tuple[int, int]


class Case(NamedTuple):
  """One task, in Repertory and in other libraries.

  Attributes:
    title: Description of the task.
    ours: One or more runs of Repertory.
    peers: Runs of other libraries.
  """

  title: str
  ours: tuple[Run, ...]
  peers: tuple[Run, ...]


def ours(
  name: str,
  agent: str,
  environment: str,
  settings: Mapping[str, Any],
  steps: tuple[int, int],
  *,
  environments: int = 1,
  one_by_one: bool = False,
) -> Run:
  """Returns a run of Repertory."""
  arguments = {
    'agent': agent,
    'environment': environment,
    'environments': environments,
    'settings': settings,
    'one_by_one': one_by_one,
  }
  return Run(name, 'repertory', arguments, steps)


def in_both_ways(
  agent: str, settings: Mapping[str, Any], steps: tuple[int, int], size: int
) -> tuple[Run, Run]:
  """Returns runs of CartPole as a vectorized batch, and as a loop."""

  def run(name: str, one_by_one: bool) -> Run:
    environment = f'gym:{CARTPOLE}'
    return ours(
      name, agent, environment, settings, steps,
      environments=size, one_by_one=one_by_one,
    )  # fmt: skip

  return run('ours, arrays', False), run('ours, one by one', True)


def baselines(
  library: str,
  algorithm: str,
  environment: str,
  settings: Mapping[str, Any],
  steps: tuple[int, int],
  *,
  environments: int = 1,
  **more: Any,
) -> Run:
  """Returns a run of Stable-Baselines3 or of SBX."""
  name = {'stable_baselines3': 'Stable-Baselines3', 'sbx': 'SBX (JAX)'}[library]
  arguments = {
    'algorithm': algorithm,
    'environment': environment,
    'environments': environments,
    'settings': settings,
    **more,
  }
  return Run(f'{name} {algorithm}', library, arguments, steps)


def cleanrl(
  script: str, flags: Mapping[str, Any], steps: tuple[int, int]
) -> Run:
  """Returns a run of a script of CleanRL."""
  return Run(
    f'CleanRL {script}', 'cleanrl', {'script': script, 'flags': flags}, steps
  )


def dm_acme(
  algorithm: str,
  environment: str,
  sizes: tuple[int, ...],
  settings: Mapping[str, Any],
  steps: tuple[int, int],
) -> Run:
  """Returns a run of dm-acme, with one environment in a process."""
  arguments = {
    'algorithm': algorithm,
    'environment': environment,
    'hidden_sizes': sizes,
    'settings': settings,
  }
  return Run(f'dm-acme {algorithm}', 'dm_acme', arguments, steps)


_DQN_STEPS = (1_040, 31_040)
_DQN = {
  'batch_size': 32,
  'hidden_sizes': (120, 84),
  'dueling': False,
  'double': False,
  'prioritized': False,
  'n_step': 1,
  'samples_per_insert': 8.0,
  'min_replay_size': 1_000,
  'max_replay_size': 10_000,
  'target_update_period': 125,
  'epsilon_base': 0.05,
  'epsilon_exponent': 0.0,
  'epsilon_anneal_steps': 0,
}


_PENDULUM = f'gym:{PENDULUM}'
_CARTPOLE = f'gym:{CARTPOLE}'
_BOTH = ('stable_baselines3', 'sbx')


def _run_dqn(name: str, **changes: Any) -> Run:
  settings = {**_DQN, **changes}
  return ours(name, 'dqn', _CARTPOLE, settings, _DQN_STEPS)


def _dqn_of_peers(num_updates: int) -> tuple[Run, ...]:
  """Returns the same DQN in Stable-Baselines3 and SBX.

  Args:
    num_updates: Consecutive updates, every 4 * `num_updates` steps.
  """
  settings = {
    'batch_size': 32,
    'buffer_size': 10_000,
    'learning_starts': 1_000,
    'train_freq': 4 * num_updates,
    'gradient_steps': num_updates,
    'target_update_interval': 500,
    'exploration_initial_eps': 0.05,
    'exploration_final_eps': 0.05,
    'policy_kwargs': {'net_arch': [120, 84]},
  }
  return tuple(
    baselines(library, 'DQN', CARTPOLE, settings, _DQN_STEPS)
    for library in _BOTH
  )


def _make_off_policy(
  agent: str, algorithm: str, script: str, flags: dict[str, Any]
) -> Case:
  """Off-policy agent with an update every step, batches of 256 and 256-256.

  Args:
    agent: Name in Repertory.
    algorithm: Name in Stable-Baselines3 and SBX.
    script: Script of CleanRL.
    flags: Further flags of the script.
  """
  steps = (1_040, 4_040)
  theirs = {
    'learning_starts': 1_000,
    'batch_size': 256,
    'train_freq': 1,
    'gradient_steps': 1,
    'policy_kwargs': {'net_arch': [256, 256]},
  }
  flags = {
    'env-id': PENDULUM,
    'batch-size': 256,
    'learning-starts': 1_000,
    **flags,
  }
  return Case(
    f'{algorithm}, Pendulum, 1 environment, batch 256, an update every step, '
    '256-256',
    (ours('ours', agent, _PENDULUM, {}, steps),),
    (
      *(
        baselines(library, algorithm, PENDULUM, theirs, steps)
        for library in _BOTH
      ),
      cleanrl(script, flags, steps),
    ),
  )


_PPO_STEPS = (2_048, 409_600)
_A2C_STEPS = (640, 2_000_640)
_D4PG_SIZES = (256, 256)
_LSTM_SIZES = (50, 50)

CASES = {
  # ε is 0.05 from the first step on: a random action needs no pass through the
  # network, so the share of random actions must be the same in all runs.
  'dqn_cartpole': Case(
    'DQN, CartPole, 1 environment, batch 32, an update every 4 steps, 120-84, '
    'uniform, without double',
    (_run_dqn('ours'),),
    (
      *_dqn_of_peers(1),
      *(
        cleanrl(
          script,
          {
            'env-id': CARTPOLE,
            'batch-size': 32,
            'buffer-size': 10_000,
            'learning-starts': 1_000,
            'train-frequency': 4,
            'target-network-frequency': 500,
            'start-e': 0.05,
            'end-e': 0.05,
          },
          _DQN_STEPS,
        )
        for script in ('dqn.py', 'dqn_jax.py')
      ),
    ),
  ),
  # Repertory makes the 8 updates in one call.
  'dqn_in_series': Case(
    'The same with 8 updates every 32 steps',
    (_run_dqn('ours', num_sgd_steps_per_step=8),),
    _dqn_of_peers(8),
  ),
  'dqn_double': Case(
    'The same with double; dm-acme has it with priorities alone',
    (
      _run_dqn('ours, prioritized, double', double=True, prioritized=True),
      _run_dqn('ours, double', double=True),
      _run_dqn('ours, without double'),
    ),
    (
      dm_acme(
        'DQN',
        CARTPOLE,
        (120, 84),
        {
          'batch_size': 32,
          'samples_per_insert': 8.0,
          'min_replay_size': 1_000,
          'max_replay_size': 10_000,
          'target_update_period': 125,
          'n_step': 1,
          'epsilon': 0.05,
        },
        (1_040, 13_040),
      ),
    ),
  ),
  # By default, the script updates the policy twice, every other step.
  'sac_pendulum': _make_off_policy(
    'sac', 'SAC', 'sac_continuous_action.py', {'policy-frequency': 1}
  ),
  # All update the policy every other step, by default. Stable-Baselines3 and
  # SBX act without noise, whose cost is negligible.
  'td3_pendulum': _make_off_policy(
    'td3', 'TD3', 'td3_continuous_action.py', {}
  ),
  'd4pg_pendulum': Case(
    'D4PG, Pendulum, 1 environment, batch 256, an update every 8 steps, '
    '256-256',
    (
      ours(
        'ours',
        'd4pg',
        _PENDULUM,
        {'samples_per_insert': 32.0, 'hidden_sizes': _D4PG_SIZES},
        (1_200, 25_200),
      ),
    ),
    (dm_acme('D4PG', PENDULUM, _D4PG_SIZES, {}, (1_200, 7_200)),),
  ),
  'ppo_cartpole': Case(
    'PPO, CartPole, 8 environments of 128 steps, 4 × 4, 64-64 with tanh',
    in_both_ways(
      'ppo',
      {'unroll_length': 128, 'num_epochs': 4, 'num_minibatches': 4},
      _PPO_STEPS,
      8,
    ),
    (
      *(
        baselines(
          library,
          'PPO',
          CARTPOLE,
          {'n_steps': 128, 'n_epochs': 4, 'batch_size': 256},
          _PPO_STEPS,
          environments=8,
        )
        for library in _BOTH
      ),
      cleanrl(
        'ppo.py',
        {
          'env-id': CARTPOLE,
          'num-envs': 8,
          'num-steps': 128,
          'num-minibatches': 4,
          'update-epochs': 4,
        },
        _PPO_STEPS,
      ),
    ),
  ),
  'impala_cartpole': Case(
    'IMPALA beside A2C, CartPole, 64 environments of 5 steps, 64-64 shared',
    in_both_ways(
      'impala',
      {'unroll_length': 5, 'batch_size': 64, 'hidden_sizes': (64, 64)},
      _A2C_STEPS,
      64,
    ),
    (
      baselines(
        'stable_baselines3',
        'A2C',
        CARTPOLE,
        {'n_steps': 5},
        _A2C_STEPS,
        environments=64,
        shared_sizes=(64, 64),
      ),
    ),
  ),
  'impala_lstm': Case(
    'IMPALA with an LSTM of 20, CartPole, 1 environment, 16 × 20 steps, 50-50',
    (
      ours(
        'ours',
        'impala',
        _CARTPOLE,
        {
          'unroll_length': 20,
          'batch_size': 16,
          'hidden_sizes': _LSTM_SIZES,
          'core': 'lstm',
          'core_size': 20,
        },
        (640, 80_640),
      ),
    ),
    (
      dm_acme(
        'IMPALA',
        CARTPOLE,
        _LSTM_SIZES,
        {
          'sequence_length': 20,
          'sequence_period': 20,
          'batch_size': 16,
          'core_size': 20,
        },
        (1_280, 13_280),
      ),
    ),
  ),
  'impala_pong': Case(
    'IMPALA beside A2C, Pong, 16 environments of 5 steps, Nature DQN',
    (
      ours(
        'ours',
        'impala',
        'atari:Pong',
        {
          'unroll_length': 5,
          'batch_size': 16,
          'hidden_sizes': (512,),
          'max_abs_reward': 1.0,
          'jit_compile': False,
        },
        (160, 8_160),
        environments=16,
      ),
    ),
    (
      baselines(
        'stable_baselines3',
        'A2C',
        'ALE/Pong-v5',
        {'n_steps': 5},
        (160, 8_160),
        environments=16,
      ),
    ),
  ),
}
