"""Speed of IMPALA: training in each topology, and its update alone.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/impala.py

Training is reported as ratios to the bare environment loop, each row measured
between two runs of that loop. The update is timed on batches of zeros, on one
core, together with its first call, which traces and compiles.
"""

import statistics

import rich.console
import rich.table
import training_speed
import update_speed

from repertory.agents import impala

_SETTINGS = {'unroll_length': 20, 'batch_size': 32, 'hidden_sizes': (64, 64)}
_CASES = (
  training_speed.Case('single', 'local_mt', 1, 8),
  training_speed.Case('single', 'local_mt', 1, 32),
  training_speed.Case('single', 'local_mt', 1, 64),
  training_speed.Case('distributed', 'local_mt', 1, 32),
  training_speed.Case('distributed', 'local_mp', 1, 32),
  training_speed.Case('distributed', 'local_mp', 2, 32),
)
_BATCH_SIZE = 32
_REPEATS = 200


def print_updates() -> None:
  """Prints the time of an update of 32 unrolls."""
  table = rich.table.Table(title='Update of 32 unrolls on one core')
  for column in ('network', 'T', 'ms', 'first call, s'):
    table.add_column(column, justify='right')
  for core, name in (('none', 'MLP (64, 64)'), ('lstm', '… and LSTM (64)')):
    for unroll_length in (20, 100):
      config = impala.IMPALAConfig(
        core=core,
        core_size=64,
        hidden_sizes=(64, 64),
        unroll_length=unroll_length,
      )
      times = update_speed.measure(
        impala.IMPALABuilder(config), _BATCH_SIZE, _REPEATS
      )
      table.add_row(
        name,
        str(unroll_length),
        f'{statistics.mean(times.later) * 1e3:.2f}',
        f'{times.first:.2f}',
      )
  rich.console.Console(width=100).print(table)


if __name__ == '__main__':
  update_speed.run(print_updates, _CASES, 'impala', _SETTINGS)
