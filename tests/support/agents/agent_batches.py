"""Small batches for each of the agents."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from repertory.agents.interface import registry
from repertory.components import specs, types
from support.agents import known_agents

_NUMBER = specs.Array((), np.float32)
_DISCRETE = specs.EnvironmentSpec(
  observations=specs.Array((3,), np.float32),
  actions=specs.DiscreteArray(2),
  rewards=_NUMBER,
  discounts=specs.BoundedArray((), np.float32, 0, 1),
)
_CONTINUOUS = _DISCRETE._replace(
  actions=specs.BoundedArray((2,), np.float32, -1, 1)
)


class Agent(NamedTuple):
  """Environment spec and settings of an agent in tests."""

  spec: specs.EnvironmentSpec
  settings: Mapping[str, Any]


# Each agent uses the ones it supports.
_SMALL = {'batch_size': 4, 'target_update_period': 1, 'min_replay_size': 50}
# Enough rows in each minibatch for three devices.
_MINIBATCHES = {'batch_size': 8, 'unroll_length': 8, 'num_minibatches': 2}
_OWN = {
  'ppo': {
    **_MINIBATCHES,
    'normalize_observations': True,
    'normalize_rewards': True,
  },
  'pqn': _MINIBATCHES,
  'vmpo': _MINIBATCHES,
}


def _describe(name):
  discrete = known_agents.AGENTS[name].actions[0] == 'discrete'
  fields = dataclasses.fields(registry.get(name).config_class)
  has = {field.name for field in fields}
  small = {key: value for key, value in _SMALL.items() if key in has}
  return Agent(
    _DISCRETE if discrete else _CONTINUOUS, {**small, **_OWN.get(name, {})}
  )


AGENTS = {name: _describe(name) for name in known_agents.NAMES}


def make_builder(name, **settings):
  """Makes the builder of an agent with small layers, without XLA."""
  small = {'hidden_sizes': (4,), 'jit_compile': False}
  return registry.make_builder(
    name, {**small, **AGENTS[name].settings, **settings}
  )


def spec_of(batch):
  """Returns the tensor specs of a learner's batch."""
  return tree.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), batch)


def make_batch(builder, spec, seed):
  """Makes a batch that fits an agent's table."""
  random = np.random.default_rng(seed)
  experience = builder.experience(spec, 4)
  size = experience.batch_size

  def draw(leaf):
    shape = [size, *leaf.shape]
    if leaf.dtype == tf.bool:
      return tf.ones(shape, tf.bool)
    if leaf.dtype.is_floating:
      return tf.constant(random.uniform(-0.9, -0.1, shape), leaf.dtype)
    return tf.constant(random.integers(0, 2, shape), leaf.dtype)

  data = tree.map_structure(draw, experience.table.signature)
  return types.Sample(
    data=data._replace(discount=tf.abs(data.discount)),
    keys=tf.range(size),
    probabilities=tf.fill([size], tf.constant(0.1, tf.float64)),
    table_sizes=tf.fill([size], tf.constant(100, tf.int64)),
  )
