"""Speed of IMPALA: training in each topology, and its update alone.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/impala.py

Training is told as ratios to the bare environment loop, each line measured
between two runs of that loop. The update is timed on batches of zeros, on one
core, with the time of its first call, which traces and compiles.
"""

import time

import numpy as np
import rich.console
import rich.table
import tensorflow as tf
import training_speed
import tree
from absl import app, flags

from repertory.agents import impala
from repertory.components import compilation, specs, types

_ENVIRONMENT = flags.DEFINE_string('env', 'gym:CartPole-v1', 'The environment.')
_STEPS = flags.DEFINE_integer('steps', 200_000, 'Environment steps of a run.')
_PART = flags.DEFINE_enum(
  'part',
  'update',
  ['update', 'training'],
  'What to measure. The update is limited to one core, training is not, and '
  'TensorFlow can be told so once.',
)

_SETTINGS = {'unroll_length': 20, 'batch_size': 32, 'hidden_sizes': (64, 64)}
_CASES = (
  training_speed.Case('single', 'local_mt', 1, 8),
  training_speed.Case('single', 'local_mt', 1, 32),
  training_speed.Case('single', 'local_mt', 1, 64),
  training_speed.Case('distributed', 'local_mt', 1, 32),
  training_speed.Case('distributed', 'local_mp', 1, 32),
  training_speed.Case('distributed', 'local_mp', 2, 32),
)
_REPEATS = 200

_SPEC = specs.EnvironmentSpec(
  observations=specs.Array((4,), np.float32),
  actions=specs.DiscreteArray(2),
  rewards=specs.Array((), np.float32),
  discounts=specs.BoundedArray((), np.float32, 0, 1),
)


def measure_update(core: str, unroll_length: int) -> tuple[float, float]:
  """Returns seconds of an update, and of its tracing and first call."""
  builder = impala.IMPALABuilder(
    impala.IMPALAConfig(
      core=core,
      core_size=64,
      hidden_sizes=(64, 64),
      unroll_length=unroll_length,
    )
  )
  update = builder.make_update(builder.make_network(_SPEC), _SPEC)
  signature = builder.make_tables(_SPEC, 1)[0].signature
  data = tree.map_structure(
    lambda spec: tf.zeros([32, *spec.shape], spec.dtype), signature
  )
  data = data._replace(mask=tf.ones_like(data.mask))
  sample = types.Sample(
    data,
    keys=tf.zeros([32], tf.uint64),
    probabilities=tf.ones([32], tf.float64),
    table_sizes=tf.ones([32], tf.int64),
  )
  element_spec = tree.map_structure(
    lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), sample
  )
  leaves = tree.flatten(sample)
  start = time.perf_counter()
  compiled = compilation.CompiledFunction(
    lambda sample: tuple(update(sample)),
    (element_spec,),
    builder.config.jit_compile,
  )
  compiled(*leaves)
  first = time.perf_counter() - start
  start = time.perf_counter()
  for _ in range(_REPEATS):
    compiled(*leaves)
  return (time.perf_counter() - start) / _REPEATS, first


def print_updates() -> None:
  """Prints how long updates of 32 unrolls take."""
  tf.config.threading.set_intra_op_parallelism_threads(1)
  tf.config.threading.set_inter_op_parallelism_threads(1)
  table = rich.table.Table(title='Update of 32 unrolls on one core')
  for column in ('network', 'T', 'ms', 'first call, s'):
    table.add_column(column, justify='right')
  for core, name in (('none', 'MLP (64, 64)'), ('lstm', '… and LSTM (64)')):
    for unroll_length in (20, 100):
      seconds, first = measure_update(core, unroll_length)
      table.add_row(
        name, str(unroll_length), f'{seconds * 1e3:.2f}', f'{first:.2f}'
      )
  rich.console.Console(width=100).print(table)


def main(_) -> None:
  """Prints a table."""
  if _PART.value == 'update':
    print_updates()
  else:
    training_speed.print_table(
      _CASES, 'impala', _ENVIRONMENT.value, _STEPS.value, _SETTINGS
    )


if __name__ == '__main__':
  app.run(main)
