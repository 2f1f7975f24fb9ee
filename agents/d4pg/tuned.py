"""Presets by environment of D4PG."""

from repertory.agents.interface.tuned_presets import TunedPreset

TUNED = (
  TunedPreset(
    environments={'gym:Pendulum-v1': None},
    patterns=('gym:Pendulum-v*', 'tensor:pendulum'),
    steps=20_000,
    source='tests/launch/learning_test.py: atoms 10 apart',
    settings={
      'vmin': -1000.0,
      'vmax': 0.0,
      'num_atoms': 101,
      'n_step': 3,
      'samples_per_insert': 128.0,
    },
  ),
  TunedPreset(
    environments={
      'dm_control:cartpole/balance': None,
      'dm_control:cartpole/swingup': None,
      'dm_control:finger/spin': None,
    },
    steps=150_000,
    source='the defaults, docs/results.md',
    evaluation_episodes=10,
  ),
)
