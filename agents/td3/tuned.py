"""Presets by environment of TD3."""

from repertory.agents.interface.tuned_presets import TunedPreset

_ZOO = 'rl-zoo3, hyperparams/td3.yml'
_BENCHMARK = 'rl-zoo3, benchmark.md'
_RANDOM = {
  'hidden_sizes': (400, 300),
  'num_random_steps': 10_000,
  'min_replay_size': 10_000,
}
_BOX2D = {**_RANDOM, 'discount': 0.98, 'max_replay_size': 200_000}
_CONTROL = 'dm_control:'

TUNED = (
  TunedPreset(
    environments={'gym:Pendulum-v1': -151.9},
    patterns=('gym:Pendulum-v*', 'tensor:pendulum'),
    steps=20_000,
    source='the defaults, docs/agents/td3.md',
    reference=_BENCHMARK,
  ),
  TunedPreset(
    environments={'gym:MountainCarContinuous-v0': 93.5},
    patterns=('gym:MountainCarContinuous-v*',),
    steps=50_000,
    source=f'{_ZOO}, with other noise, in fewer steps; one seed',
    reference=f'{_BENCHMARK}, after 300,000 steps',
    settings={
      'hidden_sizes': (400, 300),
      'sigma': 0.5,
      'noise_correlation': 0.95,
    },
  ),
  TunedPreset(
    environments={'gym:LunarLanderContinuous-v3': 207.5},
    patterns=('gym:LunarLanderContinuous-v*',),
    steps=300_000,
    source=_ZOO,
    reference=f'{_BENCHMARK}, version 2',
    settings=_BOX2D,
  ),
  TunedPreset(
    environments={'gym:BipedalWalker-v3': 306.0},
    patterns=('gym:BipedalWalker-v*',),
    steps=1_000_000,
    source=_ZOO,
    reference=_BENCHMARK,
    settings=_BOX2D,
  ),
  TunedPreset(
    environments={
      'gym:HalfCheetah-v5': 9655.7,
      'gym:Hopper-v5': 3606.4,
      'gym:Walker2d-v5': 4717.8,
    },
    patterns=('gym:HalfCheetah-v*', 'gym:Hopper-v*', 'gym:Walker2d-v*'),
    steps=1_000_000,
    source=_ZOO,
    reference=f'{_BENCHMARK}, version 3',
    settings=_RANDOM,
    evaluation_episodes=10,
  ),
  TunedPreset(
    environments={
      f'{_CONTROL}cartpole/balance': None,
      f'{_CONTROL}cartpole/swingup': None,
    },
    steps=150_000,
    source='docs/results.md: the learning rate of the authors',
    settings={'learning_rate': 3e-4},
    evaluation_episodes=10,
  ),
  TunedPreset(
    environments={
      f'{_CONTROL}cartpole/swingup_sparse': None,
      f'{_CONTROL}reacher/easy': None,
      f'{_CONTROL}finger/spin': None,
      f'{_CONTROL}cheetah/run': None,
    },
    steps=500_000,
    source='the learning rate of the authors, as for cartpole/swingup',
    settings={'learning_rate': 3e-4},
    evaluation_episodes=10,
  ),
  TunedPreset(
    environments={f'{_CONTROL}walker/walk': None},
    steps=500_000,
    source='the defaults, docs/results.md',
    evaluation_episodes=10,
  ),
)
