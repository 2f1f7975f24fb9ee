"""Presets by environment of IMPALA."""

from repertory.agents.interface.tuned_presets import TunedPreset

TUNED = (
  TunedPreset(
    environments={'gym:CartPole-v1': None},
    patterns=('gym:CartPole-v*', 'tensor:cartpole'),
    steps=300_000,
    source='the defaults, docs/results.md',
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
    source='the preset minatar, annealed over the run',
    reference="gymnax's README, PPO without sticky actions, 10 million steps",
    base='minatar',
    settings={
      'learning_rate': 'linear(4e-4,0)',
      'anneal_learner_steps': None,
    },
    environments_per_actor=64,
  ),
  TunedPreset(
    environments={'atari:Pong': None, 'atari:Breakout': None},
    patterns=('atari:*',),
    steps=10_000_000,
    source='the preset atari',
    base='atari',
    environments_per_actor=32,
    evaluation_episodes=10,
  ),
)
