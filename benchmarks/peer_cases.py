"""Identical training tasks for several libraries."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

CARTPOLE, PENDULUM = 'CartPole-v1', 'Pendulum-v1'
_BASELINES = {'stable_baselines3': 'Stable-Baselines3', 'sbx': 'SBX (JAX)'}

Steps = tuple[int] | tuple[int, int]


class Run(NamedTuple):
  """A run of one library.

  Attributes:
    name: Name in the tables.
    library: Name of the library in `peer_processes`.
    settings: Settings of its script, besides the steps.
    steps: Steps of the short run, which includes the first updates, and of the
      long one; a short one alone measures the first update.
  """

  name: str
  library: str
  settings: Mapping[str, Any]
  steps: Steps


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
  steps: Steps,
  *,
  environments: int = 1,
  **more: Any,
) -> Run:
  """Returns a run of Repertory.

  By default, XLA is only used where a run is long enough. Here it always is, so
  that its compilation is part of the short run as of the long one.
  """
  arguments = {
    'agent': agent,
    'environment': environment,
    'environments': environments,
    'settings': {'jit_compile': True, **settings},
    **more,
  }
  return Run(name, 'repertory', arguments, steps)


def in_both_ways(
  agent: str, settings: Mapping[str, Any], steps: Steps, size: int
) -> tuple[Run, ...]:
  """Returns runs of CartPole as a vectorized batch, and as a loop."""
  return tuple(
    ours(
      name, agent, f'gym:{CARTPOLE}', settings, steps,
      environments=size, one_by_one=one_by_one,
    )
    for one_by_one, name in enumerate(['ours, arrays', 'ours, one by one'])
  )  # fmt: skip


def baselines(
  algorithm: str,
  environment: str,
  settings: Mapping[str, Any],
  steps: Steps,
  *,
  environments: int = 1,
  **more: Any,
) -> tuple[Run, ...]:
  """Returns runs of Stable-Baselines3 and, unless of A2C, of SBX."""
  arguments = {
    'algorithm': algorithm,
    'environment': environment,
    'environments': environments,
    'settings': settings,
    **more,
  }
  return tuple(
    Run(f'{name} {algorithm}', library, arguments, steps)
    for library, name in _BASELINES.items()
    if library == 'stable_baselines3' or algorithm != 'A2C'
  )


def cleanrl(
  scripts: Sequence[str], flags: Mapping[str, Any], steps: Steps
) -> tuple[Run, ...]:
  """Returns runs of scripts of CleanRL."""
  return tuple(
    Run(f'CleanRL {one}', 'cleanrl', {'script': one, 'flags': flags}, steps)
    for one in scripts
  )


def dm_acme(
  algorithm: str,
  environment: str,
  sizes: tuple[int, ...],
  settings: Mapping[str, Any],
  steps: Steps,
) -> Run:
  """Returns a run of dm-acme, with one environment in a process."""
  arguments = {
    'algorithm': algorithm,
    'environment': environment,
    'hidden_sizes': sizes,
    'settings': settings,
  }
  return Run(f'dm-acme {algorithm}', 'dm_acme', arguments, steps)


# ε is 0.05 from the first step on: a random action needs no pass through the
# network, so the share of random actions must be the same in all runs.
_EPSILON = {
  'epsilon_base': 0.05,
  'epsilon_exponent': 0.0,
  'epsilon_anneal_steps': 0,
}
_EPSILON_OF_SCRIPTS = {'start-e': 0.05, 'end-e': 0.05}
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
  **_EPSILON,
}

_PENDULUM = f'gym:{PENDULUM}'
_CARTPOLE = f'gym:{CARTPOLE}'


def _run_dqn(name: str, **changes: Any) -> Run:
  return ours(name, 'dqn', _CARTPOLE, {**_DQN, **changes}, _DQN_STEPS)


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
  return baselines('DQN', CARTPOLE, settings, _DQN_STEPS)


def _make_off_policy(
  agent: str,
  algorithm: str,
  scripts: Sequence[str],
  flags: dict[str, Any],
  **more: Any,
) -> Case:
  """Off-policy agent with an update every step, batches of 256 and 256-256.

  Args:
    agent: Name in Repertory.
    algorithm: Name in Stable-Baselines3 and SBX.
    scripts: Scripts of CleanRL.
    flags: Further flags of the scripts.
    **more: Further arguments of the script of Stable-Baselines3 and SBX.
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
      *baselines(algorithm, PENDULUM, theirs, steps, **more),
      *cleanrl(scripts, flags, steps),
    ),
  )


_PPO_STEPS = (2_048, 409_600)
_MINIBATCHES = {'unroll_length': 128, 'num_epochs': 4, 'num_minibatches': 4}
_MINIBATCHES_OF_SCRIPTS = {
  'env-id': CARTPOLE,
  'num-envs': 8,
  'num-steps': 128,
  'num-minibatches': 4,
  'update-epochs': 4,
}
_ANAKIN_STEPS = (204_800, 4_300_800)
_A2C_STEPS = (640, 2_000_640)

CASES = {
  'dqn_cartpole': Case(
    'DQN, CartPole, 1 environment, batch 32, an update every 4 steps, 120-84, '
    'uniform, without double',
    (_run_dqn('ours'),),
    (
      *_dqn_of_peers(1),
      *cleanrl(
        ['dqn.py', 'dqn_jax.py'],
        {
          'env-id': CARTPOLE,
          'batch-size': 32,
          'buffer-size': 10_000,
          'learning-starts': 1_000,
          'train-frequency': 4,
          'target-network-frequency': 500,
          **_EPSILON_OF_SCRIPTS,
        },
        _DQN_STEPS,
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
    'sac', 'SAC', ['sac_continuous_action.py'], {'policy-frequency': 1}
  ),
  # All update the policy every other step, by default. Only Stable-Baselines3
  # and SBX act without noise by default.
  'td3_pendulum': _make_off_policy(
    'td3',
    'TD3',
    ['td3_continuous_action.py', 'td3_continuous_action_jax.py'],
    {},
    sigma=0.1,
  ),
  'd4pg_pendulum': Case(
    'D4PG, Pendulum, 1 environment, batch 256, an update every 8 steps, '
    '256-256',
    (
      ours(
        'ours',
        'd4pg',
        _PENDULUM,
        {'samples_per_insert': 32.0, 'hidden_sizes': (256, 256)},
        (1_200, 25_200),
      ),
    ),
    (dm_acme('D4PG', PENDULUM, (256, 256), {}, (1_200, 7_200)),),
  ),
  'ppo_cartpole': Case(
    'PPO, CartPole, 8 environments of 128 steps, 4 × 4, 64-64 with tanh',
    in_both_ways('ppo', _MINIBATCHES, _PPO_STEPS, 8),
    (
      *baselines(
        'PPO',
        CARTPOLE,
        {'n_steps': 128, 'n_epochs': 4, 'batch_size': 256},
        _PPO_STEPS,
        environments=8,
      ),
      *cleanrl(['ppo.py'], _MINIBATCHES_OF_SCRIPTS, _PPO_STEPS),
    ),
  ),
  'pqn_cartpole': Case(
    'PQN, CartPole, 8 environments of 128 steps, 4 × 4, 120-84 with layer '
    'normalization',
    in_both_ways(
      'pqn',
      {'hidden_sizes': (120, 84), **_MINIBATCHES, **_EPSILON},
      _PPO_STEPS,
      8,
    ),
    cleanrl(
      ['pqn.py'],
      {**_MINIBATCHES_OF_SCRIPTS, **_EPSILON_OF_SCRIPTS},
      _PPO_STEPS,
    ),
  ),
  'ppo_anakin': Case(
    'PPO, compiled CartPole, 64 environments of 32 steps, 4 × 4, 64-64, tanh',
    (
      ours(
        'ours, anakin',
        'ppo',
        'tensor:cartpole',
        {**_MINIBATCHES, 'unroll_length': 32},
        _ANAKIN_STEPS,
        environments=64,
        topology='anakin',
      ),
    ),
    (
      Run(
        'PureJaxRL ppo.py',
        'purejaxrl',
        {
          'ENV_NAME': CARTPOLE,
          'NUM_ENVS': 64,
          'NUM_STEPS': 32,
          'NUM_MINIBATCHES': 4,
          'UPDATE_EPOCHS': 4,
        },
        _ANAKIN_STEPS,
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
    baselines(
      'A2C',
      CARTPOLE,
      {'n_steps': 5},
      _A2C_STEPS,
      environments=64,
      shared_sizes=(64, 64),
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
          'hidden_sizes': (50, 50),
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
        (50, 50),
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
    baselines(
      'A2C', 'ALE/Pong-v5', {'n_steps': 5}, (160, 8_160), environments=16
    ),
  ),
}


def _make_start(case: Case) -> Case:
  """The first update of a case, on two stacks and in two libraries."""
  first, *others = (
    run._replace(steps=run.steps[:1])
    for run in (case.ours[0], *case.peers)
    if run.library in ('repertory', *_BASELINES)
  )
  newest = first._replace(name='ours, newest', library='repertory_newest')
  settings = {**newest.settings, 'is_warm': True}
  warm = newest._replace(name='ours, newest, XLA cached', settings=settings)
  return Case(
    f'First update: {case.title}',
    (first._replace(name='ours'),),
    (newest, warm, *others),
  )


for _name in ('dqn_cartpole', 'ppo_cartpole', 'sac_pendulum'):
  CASES[f'start_{_name}'] = _make_start(CASES[_name])
CASES['start_distributed'] = Case(
  'First update: DQN, CartPole, `distributed` in processes',
  tuple(
    ours(
      f'{number} actors', 'dqn', _CARTPOLE, _DQN, (2_000,),
      topology='distributed', num_actors=number,
    )
    for number in (2, 8)
  ),
  (),
)  # fmt: skip
