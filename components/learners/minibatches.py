"""Several gradient steps per learner step, and time-major batches."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from repertory.components import interfaces, types
from repertory.components.runtime import loops


def take_minibatch_steps(
  take_step: Callable[[Any], Mapping[str, tf.Tensor]],
  items: Any,
  seed: tf.Tensor,
  *,
  num_epochs: int,
  num_minibatches: int,
  metrics: Sequence[str],
  should_continue: Callable[[Mapping[str, tf.Tensor]], tf.Tensor] | None = None,
) -> dict[str, tf.Tensor]:
  """Takes a gradient step for each minibatch, in several epochs.

  Args:
    take_step: Updates variables from a minibatch, `[K, ...]`; returns scalars
      by name. The mask is false for items that pad a smaller minibatch.
    items: The batch, a named tuple of leaves `[N, ...]`, N known. Its `mask`
      marks valid steps, bool `[N, T]`.
    seed: int32 `[2]`, seed of the shuffling.
    num_epochs: E, passes over all items.
    num_minibatches: M, steps per epoch, in [1, N].
    metrics: Names of the metrics of a step to average.
    should_continue: Maps the metrics of a step to whether to take the next one;
      None takes all.

  Returns:
    The means of these metrics over the steps, and `gradient_steps`, the number
    of steps taken.
  """
  num_items = tree.flatten(items)[0].shape[0]
  indices, counts = shuffled_minibatches(
    seed, num_items, num_epochs, num_minibatches
  )  # [E · M, K]
  num_steps = indices.shape[0]

  def step(i, is_going, sums):
    del is_going
    taken, count = tf.gather(indices, i), tf.gather(counts, i)  # [K]
    minibatch = tree.map_structure(lambda x: tf.gather(x, taken), items)
    found = take_step(minibatch._replace(mask=minibatch.mask & count[:, None]))
    is_going = (
      tf.constant(True) if should_continue is None else should_continue(found)
    )
    return i + 1, is_going, {name: sums[name] + found[name] for name in sums}

  taken, _, sums = tf.while_loop(
    lambda i, is_going, sums: (i < num_steps) & is_going,
    step,
    (0, tf.constant(True), dict.fromkeys(metrics, 0.0)),
    maximum_iterations=num_steps,
  )
  taken = tf.cast(taken, tf.float32)
  means = {name: total / taken for name, total in sums.items()}
  return {**means, 'gradient_steps': taken}


def to_items(steps: Any) -> Any:
  """Converts `[T, B, ...]` into items for minibatches.

  Items are whole unrolls, `[B, T, ...]`, for recurrent networks, and otherwise
  single steps, `[B · T, 1, ...]`.

  Args:
    steps: A named tuple of leaves `[T, B, ...]`, T and B known. Its `state` is
      the recurrent state before the first step, `[B, ...]`, and stays as it is.
  """
  state = steps.state
  unrolls = swap_leading_axes(steps._replace(state=()))
  if not tree.flatten(state):
    unrolls = tree.map_structure(
      lambda x: tf.reshape(x, [x.shape[0] * x.shape[1], 1, *x.shape[2:]]),
      unrolls,
    )
  return unrolls._replace(state=state)


def to_steps(items: Any) -> Any:
  """Converts K items of `to_items` into steps, `[T, K, ...]`."""
  steps = swap_leading_axes(items._replace(state=()))
  return steps._replace(state=items.state)


def shuffled_minibatches(
  seed: tf.Tensor, num_items: int, num_epochs: int, num_minibatches: int
) -> tuple[tf.Tensor, tf.Tensor]:
  """Splits items into minibatches, shuffled in each epoch.

  In each of E epochs each of N items is in exactly one of M minibatches. Sizes
  differ by one at most; smaller ones are padded with items that do not count.
  Returns indices of items, int32 `[E · M, ⌈N / M⌉]`, and whether they count,
  bool. They follow from the seed, int32 `[2]`.
  """
  if not 1 <= num_minibatches <= num_items:
    raise ValueError(
      f'num_minibatches must be in [1, {num_items}], got {num_minibatches}.'
    )
  parts = np.array_split(np.arange(num_items), num_minibatches)
  places = np.full([num_minibatches, len(parts[0])], num_items)
  for row, part in zip(places, parts):
    row[: len(part)] = part
  # All bits are random, so ties are very unlikely.
  keys = tf.random.stateless_uniform(
    [num_epochs, num_items], seed, minval=None, maxval=None, dtype=tf.int32
  )
  orders = tf.argsort(keys, axis=-1)  # [E, N]
  orders = tf.pad(orders, [[0, 0], [0, 1]])  # [E, N + 1]
  shape = [num_epochs * num_minibatches, len(parts[0])]
  indices = tf.gather(orders, tf.constant(places), axis=1)
  counts = np.tile(places < num_items, [num_epochs, 1])
  return tf.reshape(indices, shape), tf.constant(counts)


def time_major(sequences: types.Sequence) -> types.Sequence:
  """Transposes `[B, T, ...]` to `[T, B, ...]`, except state and version."""
  swapped = swap_leading_axes(sequences._replace(state=(), version=()))
  return swapped._replace(state=sequences.state, version=sequences.version)


def swap_leading_axes(nest: types.Nest) -> types.Nest:
  """Transposes each leaf `[B, T, ...]` to `[T, B, ...]`, and vice versa."""
  return tree.map_structure(
    lambda leaf: tf.transpose(leaf, [1, 0, *range(2, len(leaf.shape))]), nest
  )


class UpdateSeries(interfaces.UpdateWrapper):
  """Splits a large batch into several and runs an update on each, in order.

  The results are those of separate updates, except that all batches are sampled
  before the first one has changed priorities.
  """

  def __init__(self, update: interfaces.Update, num_updates: int):
    """Takes an update on a batch `[B]`, and K, the number of updates."""
    super().__init__(update)
    self._num_updates = num_updates

  def __call__(self, sample: types.Sample) -> interfaces.UpdateResult:
    """Updates from `[K · B]`; returns mean metrics and all priorities."""
    batches = tree.map_structure(self._divide, sample)  # [K, B, ...]

    def step(i, carry):
      batch = tree.map_structure(lambda leaf: tf.gather(leaf, i), batches)
      result = interfaces.call_update(self._update, batch)
      priorities = () if result.priorities is None else result.priorities
      return carry, (dict(result.metrics), priorities)

    _, (metrics, priorities) = loops.scan(step, (), self._num_updates)
    return interfaces.UpdateResult(
      {name: tf.reduce_mean(values) for name, values in metrics.items()},
      None if isinstance(priorities, tuple) else loops.merge_axes(priorities),
    )

  def _divide(self, leaf: tf.Tensor) -> tf.Tensor:
    leaf = tf.convert_to_tensor(leaf)
    size = leaf.shape[0] // self._num_updates
    return tf.reshape(leaf, [self._num_updates, size, *leaf.shape[1:]])
