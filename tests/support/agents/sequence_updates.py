"""Shared parts of tests of updates on sequences."""

import numpy as np
import tensorflow as tf
import tree

from repertory.components import specs, types

_FLOAT = specs.Array((), np.float32)
SPEC = specs.EnvironmentSpec(
  observations=specs.Array((3,), np.float32),
  actions=specs.DiscreteArray(3),
  rewards=_FLOAT,
  discounts=_FLOAT,
)
# Items of a batch of unrolls, and their steps.
B, T = 3, 5
# Row 0 continues over an end, row 1 is padded at its end, row 2 is whole.
MASK = np.array([[1, 1, 0, 1, 1], [1, 1, 1, 0, 0], [1] * 5], np.bool_)
FIRST = np.array([[1, 0, 0, 1, 0, 0], [1] + [0] * 5, [0] * 6], np.bool_)


# Entries of padded steps, which updates ignore.
PADDING = 3.0


def make_unrolls(random):
  """Returns observations, rewards and discounts of `MASK` and `FIRST`."""
  observation = random.normal(size=[B, T + 1, 3])
  observation[1, 4:] += PADDING
  reward = np.where(MASK, 2 * random.normal(size=[B, T]), PADDING)
  discount = random.choice([0.5, 1.0], [B, T])
  discount[0, 1] = 0
  return {
    'observation': observation,
    'reward': reward,
    'discount': np.where(MASK, discount, PADDING),
  }


def to_sample(
  batch, action, state, first=FIRST, mask=MASK, extras=(), probabilities=None
):
  """Converts arrays to a sample for an update.

  Args:
    batch: Observations, rewards and discounts, by name.
    action: `[B, T, ...]`.
    state: Nest of tensors or arrays, `[B, ...]`.
    first: `[B, T + 1]`.
    mask: `[B, T]`.
    extras: Nest of tensors, `[B, T, ...]`.
    probabilities: Sampling probabilities of the items, times 50; 1 by default.
  """
  num_items = len(mask)
  data = types.Sequence(
    **{name: tf.constant(x, tf.float32) for name, x in batch.items()},
    first=tf.constant(first),
    action=tf.constant(action),
    mask=tf.constant(mask),
    extras=extras,
    state=state,
    version=tf.zeros([num_items], tf.int64),
  )
  if probabilities is None:
    probabilities = np.ones(num_items)
  return types.Sample(
    data,
    tf.range(num_items),
    tf.constant(probabilities, tf.float64),
    tf.fill([num_items], tf.constant(50, tf.int64)),
  )


def random_state(network, random, num_items=B):
  """Returns a state that differs from the initial one."""
  return tree.map_structure(
    lambda leaf: tf.constant(random.normal(size=leaf.shape), tf.float32),
    network.initial_state(num_items),
  )


def to_arrays(sample):
  """Returns time-major arrays of a sample by name, with its extras."""
  data = sample.data
  names = ('observation', 'reward', 'discount', 'mask', 'action')
  found = {name: getattr(data, name) for name in names}
  return {
    name: np.asarray(x).swapaxes(0, 1)
    for name, x in {**found, **(data.extras or {})}.items()
  }
