"""Presets by environment of PQN."""

from repertory.agents.interface.tuned_presets import TunedPreset

TUNED = (
  TunedPreset(
    environments={'gym:CartPole-v1': None},
    patterns=('gym:CartPole-v*', 'tensor:cartpole'),
    steps=150_000,
    source='scale of rewards and final ε of the authors, pqn_cartpole.yaml',
    settings={
      'reward_scale': 0.1,
      'epsilon_base': 0.2,
      'learning_rate': 'linear(5e-4,0)',
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
    steps=2_000_000,
    source='the preset minatar in a fifth of its steps, docs/agents/pqn.md',
    base='minatar',
    settings={
      'learning_rate': 'linear(5e-4,0)',
      'anneal_learner_steps': None,
      'epsilon_anneal_steps': 200_000,
    },
    environments_per_actor=128,
  ),
)
