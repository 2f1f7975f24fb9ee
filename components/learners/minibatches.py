"""Several passes over one batch, in random order and in parts."""

import numpy as np
import tensorflow as tf


def shuffled_minibatches(
  seed: tf.Tensor, num_items: int, num_epochs: int, num_minibatches: int
) -> tuple[tf.Tensor, tf.Tensor]:
  """Divides items into minibatches, anew in each epoch.

  In every epoch each item is in exactly one minibatch. Their sizes differ by
  one at most; the smaller ones are filled up with items that do not count.

  Args:
    seed: int32 `[2]`; equal seeds give equal minibatches.
    num_items: N.
    num_epochs: E, passes over all items.
    num_minibatches: M, in [1, N].

  Returns:
    Indices of items, int32 `[E · M, ⌈N / M⌉]`, and which of them count, bool of
    the same shape.

  Raises:
    ValueError: If there are more minibatches than items.
  """
  if not 1 <= num_minibatches <= num_items:
    raise ValueError(
      f'num_minibatches must be in [1, num_items] = [1, {num_items}], got '
      f'{num_minibatches}.'
    )
  parts = np.array_split(np.arange(num_items), num_minibatches)
  places = np.full([num_minibatches, len(parts[0])], num_items)
  for row, part in zip(places, parts):
    row[: len(part)] = part
  # All bits are random, so two keys are hardly ever the same.
  keys = tf.random.stateless_uniform(
    [num_epochs, num_items], seed, minval=None, maxval=None, dtype=tf.int32
  )
  orders = tf.argsort(keys, axis=-1)  # [E, N]
  orders = tf.pad(orders, [[0, 0], [0, 1]])  # [E, N + 1]
  shape = [num_epochs * num_minibatches, len(parts[0])]
  indices = tf.gather(orders, tf.constant(places), axis=1)
  counts = np.tile(places < num_items, [num_epochs, 1])
  return tf.reshape(indices, shape), tf.constant(counts)
