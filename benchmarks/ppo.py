"""Speed of PPO: its update alone, and training in each topology.

Run from the checkout: `.venv/bin/python benchmarks/ppo.py --part=update`.
"""

import rich.console
import rich.table
import training_speed
import update_speed

from repertory.agents import ppo

_CASES = (
  training_speed.Case('single', 'local_mt', 1, 8),
  training_speed.Case('single', 'local_mt', 1, 32),
  training_speed.Case('distributed', 'local_mt', 1, 32),
  training_speed.Case('distributed', 'local_mp', 2, 32),
  training_speed.Case('central', 'local_mp', 2, 32),
)
_BATCH_SIZE = 8
_REPEATS = 30


def print_updates() -> None:
  """Prints the time of an update of 8 unrolls of 128 steps."""
  table = rich.table.Table(title='Update of 8 × 128 steps, 4 × 4 minibatches')
  for column in ('network', 'compiled by', 'ms', 'first call, s'):
    table.add_column(column, justify='right')
  for core, name in (('none', 'MLP (64, 64)'), ('lstm', 'LSTM (64) and MLP')):
    for jit_compile in (True, False):
      config = ppo.PPOConfig(core=core, core_size=64, jit_compile=jit_compile)
      times = update_speed.measure(
        ppo.PPOBuilder(config), _BATCH_SIZE, _REPEATS
      )
      table.add_row(
        name,
        'XLA' if jit_compile else 'TensorFlow',
        f'{min(times.later) * 1e3:.1f}',
        f'{times.first:.1f}',
      )
  rich.console.Console(width=100).print(table)


if __name__ == '__main__':
  update_speed.run(print_updates, _CASES, 'ppo', {})
