"""Speed of an agent's update alone, on batches of zeros and on one core.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/update_speed.py --agent=ppo

The first call traces and compiles.
"""

import dataclasses
import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import rich.console
import rich.table
import tensorflow as tf
import tree
from absl import app, flags

from repertory.agents.interface import builder as builder_lib
from repertory.agents.interface import registry
from repertory.components import specs, types
from repertory.components.runtime import compilation

_AGENT = flags.DEFINE_enum('agent', 'ppo', ['impala', 'ppo'], 'The agent.')
_REPEATS = flags.DEFINE_integer('repeats', 30, 'Updates of a case.')

# The spec of CartPole, in single precision.
_SPEC = specs.EnvironmentSpec(
  observations=specs.Array((4,), np.float32),
  actions=specs.DiscreteArray(2),
  rewards=specs.Array((), np.float32),
  discounts=specs.BoundedArray((), np.float32, 0, 1),
)


@dataclasses.dataclass(frozen=True)
class Times:
  """Seconds of the first call, with compilation, and of each later one."""

  first: float
  later: list[float]


def measure(
  builder: builder_lib.Builder,
  batch_size: int,
  repeats: int,
  *,
  spec: specs.EnvironmentSpec = _SPEC,
  max_seconds: float = math.inf,
) -> Times:
  """Times the update on items without padding.

  Each call is synchronized: a GPU would otherwise run asynchronously.

  Args:
    builder: Builder of the agent.
    batch_size: Items per batch.
    repeats: Maximum number of calls after the first.
    spec: Spec of the environment; by default that of CartPole.
    max_seconds: Time limit, after which no further call is made.
  """
  update = builder.make_update(builder.make_network(spec), spec)
  sample = _make_sample(builder, spec, batch_size)
  element_spec = tree.map_structure(
    lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), sample
  )
  leaves = tree.flatten(sample)
  start = time.perf_counter()
  compiled = compilation.CompiledFunction(
    lambda sample: tuple(update(sample)),
    (element_spec,),
    builder.config.jit_compile is not False,
  )
  compiled(*leaves)[0].numpy()
  first = time.perf_counter() - start
  later = []
  end = time.perf_counter() + max_seconds
  while len(later) < repeats and (not later or time.perf_counter() < end):
    start = time.perf_counter()
    compiled(*leaves)[0].numpy()
    later.append(time.perf_counter() - start)
  return Times(first, later)


def _make_sample(
  builder: builder_lib.Builder, spec: specs.EnvironmentSpec, batch_size: int
) -> types.Sample:
  signature = builder.experience(spec, batch_size).table.signature
  data = tree.map_structure(
    lambda leaf: tf.zeros([batch_size, *leaf.shape], leaf.dtype), signature
  )
  if 'mask' in data._fields:  # Of sequences.
    data = data._replace(mask=tf.ones_like(data.mask))
  return types.Sample(
    data,
    keys=tf.zeros([batch_size], tf.uint64),
    probabilities=tf.ones([batch_size], tf.float64),
    table_sizes=tf.ones([batch_size], tf.int64),
  )


def _cases() -> Iterator[tuple[str, int, Mapping[str, Any]]]:
  """Yields name, items per batch and settings of each case."""
  for core, name in (('none', 'MLP (64, 64)'), ('lstm', 'LSTM (64) and MLP')):
    settings = {'core': core, 'core_size': 64}
    if _AGENT.value == 'ppo':
      for jit_compile in (True, False):
        library = 'XLA' if jit_compile else 'TensorFlow'
        yield f'{name}, {library}', 8, {**settings, 'jit_compile': jit_compile}
    else:
      for length in (20, 100):
        sizes = {'hidden_sizes': (64, 64), 'unroll_length': length}
        yield f'{name}, T={length}', 32, {**settings, **sizes}


def main(_) -> None:
  """Prints a table."""
  tf.config.threading.set_intra_op_parallelism_threads(1)
  tf.config.threading.set_inter_op_parallelism_threads(1)
  table = rich.table.Table(title=f'Update of {_AGENT.value} on one core')
  for column in ('case', 'ms, mean', 'ms, fastest', 'first call, s'):
    table.add_column(column, justify='right')
  for name, batch_size, settings in _cases():
    builder = registry.make_builder(_AGENT.value, settings)
    times = measure(builder, batch_size, _REPEATS.value)
    milliseconds = [1e3 * seconds for seconds in times.later]
    table.add_row(
      name,
      f'{sum(milliseconds) / len(milliseconds):.2f}',
      f'{min(milliseconds):.2f}',
      f'{times.first:.2f}',
    )
  rich.console.Console(width=100).print(table)


if __name__ == '__main__':
  app.run(main)
