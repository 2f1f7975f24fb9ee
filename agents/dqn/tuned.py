"""Presets by environment of DQN."""

from repertory.agents.interface.tuned_presets import TunedPreset

_ZOO = 'rl-zoo3, hyperparams/dqn.yml'
_BENCHMARK = 'rl-zoo3, benchmark.md'

TUNED = (
  TunedPreset(
    environments={'gym:CartPole-v1': 500.0},
    patterns=('gym:CartPole-v*', 'tensor:cartpole'),
    steps=50_000,
    source='the defaults, docs/results.md',
    reference=_BENCHMARK,
  ),
  TunedPreset(
    environments={'gym:Acrobot-v1': -76.6},
    patterns=('gym:Acrobot-v*',),
    steps=100_000,
    source='the defaults; with the settings of rl-zoo3, seed 0 learned later',
    reference=_BENCHMARK,
  ),
  TunedPreset(
    environments={'gym:LunarLander-v3': 154.4},
    patterns=('gym:LunarLander-v*',),
    steps=100_000,
    source='the defaults',
    reference=f'{_BENCHMARK}, version 2',
  ),
  TunedPreset(
    environments={'gym:MountainCar-v0': -100.8},
    patterns=('gym:MountainCar-v*',),
    steps=120_000,
    source=_ZOO,
    reference=_BENCHMARK,
    settings={
      'hidden_sizes': (256, 256),
      'double': False,
      'dueling': False,
      'prioritized': False,
      'n_step': 1,
      'epsilon_exponent': 0.0,
      'learning_rate': 4e-3,
      'batch_size': 128,
      'discount': 0.98,
      'max_replay_size': 10_000,
      'min_replay_size': 1_000,
      'target_update_period': 300,
      'samples_per_insert': 64.0,
      'epsilon_base': 0.07,
      'epsilon_anneal_steps': 24_000,
    },
  ),
  TunedPreset(
    environments={
      'minatar:asterix': None,
      'minatar:breakout': None,
      'minatar:freeway': None,
      'minatar:seaquest': None,
      'minatar:space_invaders': None,
    },
    patterns=('minatar:*', 'tensor:minatar/*'),
    steps=5_000_000,
    source='arXiv:1903.03176, section 4',
    base='minatar',
  ),
  TunedPreset(
    environments={'bsuite:catch/0': None, 'bsuite:cartpole/0': None},
    patterns=('bsuite:catch*/*', 'bsuite:cartpole*/*'),
    steps=100_000,
    source="bsuite's baselines, DQN, with updates of the targets every 100",
    settings={
      'hidden_sizes': (50, 50),
      'double': False,
      'dueling': False,
      'prioritized': False,
      'n_step': 1,
      'target_update_period': 100,
      'samples_per_insert': 32.0,
      'max_replay_size': 10_000,
      'epsilon_base': 0.05,
      'epsilon_exponent': 0.0,
      'epsilon_anneal_steps': 0,
    },
  ),
  TunedPreset(
    environments={'atari:Pong': 20.6, 'atari:Breakout': 358.3},
    patterns=('atari:*',),
    steps=10_000_000,
    source='the preset atari, with a smaller replay table, as in rl-zoo3',
    reference=_BENCHMARK,
    base='atari',
    settings={'max_replay_size': 100_000},
    evaluation_episodes=10,
  ),
)
