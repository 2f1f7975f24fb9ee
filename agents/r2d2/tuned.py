"""Presets by environment of R2D2."""

from repertory.agents.interface.tuned_presets import TunedPreset

_KEY = 'minigrid:MiniGrid-DoorKey-'
_MEMORY = 'minigrid:MiniGrid-MemoryS7-v0'

TUNED = (
  TunedPreset(
    environments={
      f'{_KEY}5x5-v0?one_hot=true': None,
      f'{_KEY}6x6-v0?one_hot=true': None,
      f'{_MEMORY}?one_hot=true': None,
    },
    steps=500_000,
    source='the defaults, with longer sequences for a slower exploration',
    settings={
      'unroll_length': 32,
      'learning_rate': 5e-4,
      'epsilon_anneal_steps': 50_000,
      'jit_compile': False,
    },
    environments_per_actor=8,
  ),
)
