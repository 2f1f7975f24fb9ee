"""Speed of an agent's update alone, on batches of zeros and on one core.

Or of its training, by `training_speed`: the flag `--part` selects.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import training_speed
import tree
from absl import app, flags

from repertory.agents.interface import builder as builder_lib
from repertory.components import specs, types
from repertory.components.runtime import compilation

_ENVIRONMENT = flags.DEFINE_string('env', 'gym:CartPole-v1', 'The environment.')
_STEPS = flags.DEFINE_integer('steps', 200_000, 'Environment steps of a run.')
_PART = flags.DEFINE_enum(
  'part',
  'update',
  ['update', 'training'],
  'Part to measure: the update on one core, or training on all. The number '
  'of threads of TensorFlow can be set only once.',
)

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


def run(
  print_updates: Callable[[], None],
  cases: Sequence[training_speed.Case],
  agent: str,
  settings: Mapping[str, Any],
) -> None:
  """Measures the part that the flags select.

  Args:
    print_updates: Measures updates, on one core.
    cases: Topologies of the training.
    agent: Name of the agent.
    settings: Settings of the agent, in training.
  """

  def main(_):
    if _PART.value == 'training':
      training_speed.print_table(
        cases, agent, _ENVIRONMENT.value, _STEPS.value, settings
      )
      return
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    print_updates()

  app.run(main)


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
