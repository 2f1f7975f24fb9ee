"""Speed of PPO: of its update, and of training in each topology.

Run from the checkout: `.venv/bin/python benchmarks/ppo.py --part=update`.
"""

import time

import numpy as np
import rich.console
import rich.table
import tensorflow as tf
import training_speed
import tree
from absl import app, flags

from repertory.agents import ppo
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

_CASES = (
  training_speed.Case('single', 'local_mt', 1, 8),
  training_speed.Case('single', 'local_mt', 1, 32),
  training_speed.Case('distributed', 'local_mt', 1, 32),
  training_speed.Case('distributed', 'local_mp', 2, 32),
  training_speed.Case('central', 'local_mp', 2, 32),
)
_BATCH_SIZE = 8
_REPEATS = 30

_SPEC = specs.EnvironmentSpec(
  observations=specs.Array((4,), np.float32),
  actions=specs.DiscreteArray(2),
  rewards=specs.Array((), np.float32),
  discounts=specs.BoundedArray((), np.float32, 0, 1),
)


def measure_update(core: str, jit_compile: bool) -> tuple[float, float]:
  """Returns seconds of an update, and of its tracing and first call."""
  builder = ppo.PPOBuilder(
    ppo.PPOConfig(core=core, core_size=64, jit_compile=jit_compile)
  )
  update = builder.make_update(builder.make_network(_SPEC), _SPEC)
  signature = builder.make_tables(_SPEC, _BATCH_SIZE)[0].signature
  data = tree.map_structure(
    lambda spec: tf.zeros([_BATCH_SIZE, *spec.shape], spec.dtype), signature
  )
  sample = types.Sample(
    data._replace(mask=tf.ones_like(data.mask)),
    keys=tf.zeros([_BATCH_SIZE], tf.uint64),
    probabilities=tf.ones([_BATCH_SIZE], tf.float64),
    table_sizes=tf.ones([_BATCH_SIZE], tf.int64),
  )
  element_spec = tree.map_structure(
    lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), sample
  )
  leaves = tree.flatten(sample)
  start = time.perf_counter()
  compiled = compilation.CompiledFunction(
    lambda sample: tuple(update(sample)), (element_spec,), jit_compile
  )
  compiled(*leaves)
  first = time.perf_counter() - start
  seconds = []
  for _ in range(_REPEATS):
    start = time.perf_counter()
    compiled(*leaves)
    seconds.append(time.perf_counter() - start)
  return min(seconds), first


def print_updates() -> None:
  """Prints how long updates of 8 unrolls of 128 steps take."""
  tf.config.threading.set_intra_op_parallelism_threads(1)
  tf.config.threading.set_inter_op_parallelism_threads(1)
  table = rich.table.Table(title='Update of 8 × 128 steps, 4 × 4 minibatches')
  for column in ('network', 'compiled by', 'ms', 'first call, s'):
    table.add_column(column, justify='right')
  for core, name in (('none', 'MLP (64, 64)'), ('lstm', 'LSTM (64) and MLP')):
    for jit_compile in (True, False):
      seconds, first = measure_update(core, jit_compile)
      table.add_row(
        name,
        'XLA' if jit_compile else 'TensorFlow',
        f'{seconds * 1e3:.1f}',
        f'{first:.1f}',
      )
  rich.console.Console(width=100).print(table)


def main(_) -> None:
  """Prints a table."""
  if _PART.value == 'update':
    print_updates()
  else:
    training_speed.print_table(
      _CASES, 'ppo', _ENVIRONMENT.value, _STEPS.value, {}
    )


if __name__ == '__main__':
  app.run(main)
