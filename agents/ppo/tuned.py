"""Presets by environment of PPO."""

from repertory.agents.interface.tuned_presets import TunedPreset

_ZOO = 'rl-zoo3, hyperparams/ppo.yml'
_BENCHMARK = 'rl-zoo3, benchmark.md'
_NORMALIZED = {
  'normalize_observations': True,
  'normalize_rewards': True,
  'max_abs_reward': 10.0,
}
# Those of Stable-Baselines3 where they differ from ours.
_SB3 = {'learning_rate': 3e-4, 'entropy_cost': 0.0}
_KEY = 'minigrid:MiniGrid-DoorKey-'
_MEMORY = 'minigrid:MiniGrid-MemoryS7-v0'
_GRIDS = {'num_minibatches': 8, 'jit_compile': False}

TUNED = (
  TunedPreset(
    environments={'gym:CartPole-v1': 500.0},
    patterns=('gym:CartPole-v*', 'tensor:cartpole'),
    steps=100_000,
    source=_ZOO,
    reference=_BENCHMARK,
    settings={
      'unroll_length': 32,
      'num_epochs': 20,
      'num_minibatches': 1,
      'discount': 0.98,
      'lambda_': 0.8,
      'entropy_cost': 0.0,
      'learning_rate': 'linear(1e-3,0)',
      'clip_epsilon': 'linear(0.2,0)',
    },
  ),
  TunedPreset(
    environments={'gym:Acrobot-v1': -73.5},
    patterns=('gym:Acrobot-v*',),
    steps=1_000_000,
    source=_ZOO,
    reference=_BENCHMARK,
    settings={
      **_SB3,
      **_NORMALIZED,
      'unroll_length': 256,
      'num_minibatches': 64,
      'lambda_': 0.94,
    },
    environments_per_actor=16,
  ),
  TunedPreset(
    environments={'gym:MountainCar-v0': -110.4},
    patterns=('gym:MountainCar-v*',),
    steps=1_000_000,
    source=_ZOO,
    reference=_BENCHMARK,
    settings={
      **_SB3,
      **_NORMALIZED,
      'unroll_length': 16,
      'lambda_': 0.98,
    },
    environments_per_actor=16,
  ),
  TunedPreset(
    environments={'gym:Pendulum-v1': -172.2},
    patterns=('gym:Pendulum-v*', 'tensor:pendulum'),
    steps=200_000,
    source=f'{_ZOO}, without gSDE, annealed over twice the steps',
    reference=f'{_BENCHMARK}, with gSDE, after 100,000 steps',
    settings={
      'unroll_length': 1024,
      'batch_size': 4,
      'num_epochs': 10,
      'num_minibatches': 64,
      'discount': 0.9,
      'entropy_cost': 0.0,
      'learning_rate': 'linear(1e-3,0)',
    },
    environments_per_actor=4,
  ),
  TunedPreset(
    environments={
      'gym:LunarLander-v3': 242.1,
      'gym:LunarLanderContinuous-v3': 270.9,
    },
    patterns=('gym:LunarLander-v*', 'gym:LunarLanderContinuous-v*'),
    steps=1_000_000,
    source=f'{_ZOO}, with normalizers',
    reference=f'{_BENCHMARK}, version 2',
    settings={
      **_NORMALIZED,
      'learning_rate': 3e-4,
      'unroll_length': 1024,
      'num_minibatches': 256,
      'discount': 0.999,
      'lambda_': 0.98,
    },
    environments_per_actor=16,
  ),
  TunedPreset(
    environments={'gym:BipedalWalker-v3': 287.9},
    patterns=('gym:BipedalWalker-v*',),
    steps=5_000_000,
    source=_ZOO,
    reference=_BENCHMARK,
    settings={
      **_SB3,
      **_NORMALIZED,
      'unroll_length': 2048,
      'num_epochs': 10,
      'num_minibatches': 1024,
      'discount': 0.999,
      'clip_epsilon': 0.18,
    },
    environments_per_actor=32,
  ),
  TunedPreset(
    environments={
      'gym:HalfCheetah-v5': 5819.1,
      'gym:Hopper-v5': 2410.4,
      'gym:Walker2d-v5': 3478.8,
    },
    patterns=('gym:HalfCheetah-v*', 'gym:Hopper-v*', 'gym:Walker2d-v*'),
    steps=1_000_000,
    source="the preset mujoco, annealed as in CleanRL's ppo_continuous_action",
    reference=f'{_BENCHMARK}, version 3, with settings for each task',
    base='mujoco',
    settings={'learning_rate': 'linear(3e-4,0)'},
    evaluation_episodes=10,
  ),
  TunedPreset(
    environments={
      'minatar:asterix': 15.0,
      'minatar:breakout': 28.0,
      'minatar:freeway': 58.0,
      'minatar:seaquest': None,
      'minatar:space_invaders': 131.0,
    },
    patterns=('minatar:*', 'tensor:minatar/*'),
    steps=1_500_000,
    source="the layers of IMPALA's preset minatar; one seed",
    reference="gymnax's README, without sticky actions, after 10 million steps",
    settings={
      'image_torso': 'residual',
      'shared_sizes': (128,),
      'hidden_sizes': (),
      'unroll_length': 32,
      'num_minibatches': 8,
      'learning_rate': 'linear(1e-3,0)',
      'jit_compile': False,
    },
    environments_per_actor=64,
  ),
  TunedPreset(
    environments={f'{_KEY}5x5-v0?one_hot=true': 0.964},
    steps=150_000,
    source='the defaults with smaller minibatches, annealed',
    reference=f'{_BENCHMARK}, after 100,000 steps',
    settings={**_GRIDS, 'learning_rate': 'linear(1e-3,0)'},
    environments_per_actor=16,
  ),
  TunedPreset(
    environments={f'{_KEY}6x6-v0?one_hot=true': None},
    steps=500_000,
    source='the defaults with smaller minibatches',
    settings=_GRIDS,
    environments_per_actor=16,
  ),
  TunedPreset(
    environments={f'{_MEMORY}?one_hot=true': None},
    steps=1_000_000,
    source='those of DoorKey-6x6 with an LSTM',
    settings={**_GRIDS, 'core': 'lstm', 'core_size': 64},
    environments_per_actor=16,
  ),
  TunedPreset(
    environments={'bsuite:catch/0': None, 'bsuite:cartpole/0': None},
    patterns=('bsuite:catch*/*', 'bsuite:cartpole*/*'),
    steps=300_000,
    source='the defaults',
  ),
  TunedPreset(
    environments={'atari:Pong': 21.0, 'atari:Breakout': 398.0},
    patterns=('atari:*',),
    steps=10_000_000,
    source='the preset atari, with the epochs and schedules of rl-zoo3',
    reference=_BENCHMARK,
    base='atari',
    settings={
      'num_epochs': 4,
      'learning_rate': 'linear(2.5e-4,0)',
      'clip_epsilon': 'linear(0.1,0)',
      'anneal_learner_steps': None,
    },
    evaluation_episodes=10,
  ),
)
