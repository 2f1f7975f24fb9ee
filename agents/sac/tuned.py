"""Presets by environment of SAC."""

from repertory.agents.interface.tuned_presets import TunedPreset

_ZOO = 'rl-zoo3, hyperparams/sac.yml'
_BENCHMARK = 'rl-zoo3, benchmark.md'
_OTHER_NOISE = f'{_BENCHMARK}, with gSDE'
_RANDOM = {'num_random_steps': 10_000, 'min_replay_size': 10_000}
_LAYERS = {'hidden_sizes': (400, 300)}
_CONTROL = 'dm_control:'
_TDMPC = 'TD-MPC2, results of SAC with repeated actions, mean of three seeds'

TUNED = (
  TunedPreset(
    environments={'gym:Pendulum-v1': -157.0},
    patterns=('gym:Pendulum-v*', 'tensor:pendulum'),
    steps=20_000,
    source=_ZOO,
    reference=_BENCHMARK,
    settings={
      'learning_rate': 1e-3,
      'temperature_learning_rate': 1e-3,
    },
  ),
  TunedPreset(
    environments={'gym:MountainCarContinuous-v0': 94.7},
    patterns=('gym:MountainCarContinuous-v*',),
    steps=50_000,
    source=f'{_ZOO}, with correlated noise in place of gSDE',
    reference=_OTHER_NOISE,
    settings={
      'noise_correlation': 0.95,
      'hidden_sizes': (64, 64),
      'batch_size': 512,
      'samples_per_insert': 512.0,
      'discount': 0.9999,
      'max_replay_size': 50_000,
      'target_update_rate': 0.01,
      'initial_temperature': 0.1,
      'temperature_learning_rate': 0.0,
    },
  ),
  TunedPreset(
    environments={'gym:LunarLanderContinuous-v3': 260.4},
    patterns=('gym:LunarLanderContinuous-v*',),
    steps=500_000,
    source=_ZOO,
    reference=f'{_BENCHMARK}, version 2',
    settings={
      **_RANDOM,
      **_LAYERS,
      'learning_rate': 'linear(7.3e-4,0)',
      'temperature_learning_rate': 'linear(7.3e-4,0)',
      'target_update_rate': 0.01,
    },
  ),
  TunedPreset(
    environments={'gym:BipedalWalker-v3': 297.7},
    patterns=('gym:BipedalWalker-v*',),
    steps=500_000,
    source=f'{_ZOO}, without gSDE',
    reference=_OTHER_NOISE,
    settings={
      **_RANDOM,
      **_LAYERS,
      'learning_rate': 7.3e-4,
      'temperature_learning_rate': 7.3e-4,
      'discount': 0.98,
      'max_replay_size': 300_000,
      'target_update_rate': 0.02,
    },
  ),
  TunedPreset(
    environments={
      'gym:HalfCheetah-v5': 9535.5,
      'gym:Hopper-v5': 2325.5,
      'gym:Walker2d-v5': 3863.2,
    },
    patterns=('gym:HalfCheetah-v*', 'gym:Hopper-v*', 'gym:Walker2d-v*'),
    steps=300_000,
    source='the defaults with normalizers, docs/normalization.md',
    reference=f'{_BENCHMARK}, version 3, after a million steps',
    settings={'normalize_observations': True, 'normalize_rewards': True},
    evaluation_episodes=10,
  ),
  TunedPreset(
    environments={
      f'{_CONTROL}cartpole/balance': 998.7,
      f'{_CONTROL}cartpole/swingup': 835.0,
      f'{_CONTROL}finger/spin': 762.4,
    },
    steps=150_000,
    source='the preset dm_control, docs/results.md',
    reference=_TDMPC,
    base='dm_control',
    evaluation_episodes=10,
  ),
  TunedPreset(
    environments={
      f'{_CONTROL}cartpole/swingup_sparse': 530.8,
      f'{_CONTROL}reacher/easy': 918.3,
      f'{_CONTROL}cheetah/run': 594.5,
      f'{_CONTROL}walker/walk': 952.9,
    },
    steps=500_000,
    source='the preset dm_control, docs/results.md',
    reference=_TDMPC,
    base='dm_control',
    evaluation_episodes=10,
  ),
)
