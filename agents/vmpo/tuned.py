"""Presets by environment of V-MPO."""

from repertory.agents.interface.tuned_presets import TunedPreset

TUNED = (
  TunedPreset(
    environments={'gym:CartPole-v1': None},
    patterns=('gym:CartPole-v*', 'tensor:cartpole'),
    steps=200_000,
    source='the defaults, docs/agents/vmpo.md',
  ),
  TunedPreset(
    environments={'gym:Pendulum-v1': None},
    patterns=('gym:Pendulum-v*', 'tensor:pendulum'),
    steps=200_000,
    source='docs/agents/vmpo.md',
    settings={
      'unroll_length': 256,
      'num_epochs': 20,
      'num_minibatches': 16,
      'discount': 0.9,
      'epsilon_mean': 0.1,
      'epsilon_stddev': 1e-4,
    },
  ),
)
