"""Presets by environment of MPO."""

from repertory.agents.interface.tuned_presets import TunedPreset

TUNED = (
  TunedPreset(
    environments={'gym:Pendulum-v1': None},
    patterns=('gym:Pendulum-v*', 'tensor:pendulum'),
    steps=20_000,
    source='the defaults, docs/agents/mpo.md',
  ),
  TunedPreset(
    environments={
      'dm_control:cartpole/balance': None,
      'dm_control:cartpole/swingup': None,
    },
    steps=150_000,
    source='docs/results.md: Acme, without distributional critic',
    base='dm_control',
    settings={'distribution': 'none', 'samples_per_insert': 64.0},
    evaluation_episodes=10,
  ),
  TunedPreset(
    environments={
      'dm_control:reacher/easy': None,
      'dm_control:finger/spin': None,
      'dm_control:cheetah/run': None,
      'dm_control:walker/walk': None,
    },
    steps=500_000,
    source='the preset steady, docs/results.md',
    base='steady',
    evaluation_episodes=10,
  ),
)
