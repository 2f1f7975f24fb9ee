"""Mapping between discrete actions and their indices."""

import math

import numpy as np
import tensorflow as tf
import tree

from repertory.components import specs, types
from repertory.components.actions import action_parts

# Limit on combinations of several integers, because a network rates each.
MAX_COMBINATIONS = 4_096


class DiscreteActions:
  """Numbers all discrete actions, 0 to A − 1.

  A single discrete action is its own index. Of several integers each
  combination gets one: the last integer, in the order of `tree.flatten`, varies
  fastest. So value-based agents rate combinations, without assuming that the
  integers are independent.

  Attributes:
    num_actions: A.
  """

  def __init__(self, action_spec: types.Nest):
    """Counts the combinations.

    Args:
      action_spec: A `DiscreteArray`, a bounded array of integers, or a nest of
        them.

    Raises:
      ValueError: If a part is of another kind, or if several integers have more
        than `MAX_COMBINATIONS`.
    """
    self._spec = action_spec
    parts = action_parts.parts_of(action_spec)
    self._minima, self._counts = [], []
    for part in parts:
      if not action_parts.is_discrete(part.spec):
        raise ValueError(
          f'{part.name} must be a DiscreteArray or an array of integers with '
          f'bounds, got {part.spec!r}.'
        )
      minimum, part_counts = action_parts.choices_of(part.spec)
      self._minima.append(minimum)
      self._counts.append(part_counts)
    self._is_number = isinstance(action_spec, specs.DiscreteArray)
    counts = np.concatenate([one.ravel() for one in self._counts])
    self.num_actions = math.prod(counts.tolist())
    if not self._is_number and self.num_actions > MAX_COMBINATIONS:
      raise ValueError(
        f'The integers of an action must have at most {MAX_COMBINATIONS:,} '
        'combinations, because this agent rates each; got '
        f'{self.num_actions:,} in {action_spec!r}.'
      )
    self._specs = [part.spec for part in parts]
    self._dtypes = [tf.as_dtype(spec.dtype) for spec in self._specs]
    # Index difference between combinations that differ by 1 in one integer.
    strides = np.append(np.cumprod(counts[:0:-1])[::-1], 1)
    self._strides = self._split(strides.astype(np.int32))
    self._tables: list[np.ndarray] = []  # Per part: its values in all actions.
    if not self._is_number:
      steps = np.arange(self.num_actions)[:, None] // strides % counts
      self._tables = [
        part.astype(minimum.dtype) + minimum
        for part, minimum in zip(self._split(steps), self._minima)
      ]

  def to_action(self, number: tf.Tensor | np.ndarray) -> types.Nest:
    """Converts indices, int32 `[B]`, into actions of the spec, `[B, ...]`."""
    if isinstance(number, np.ndarray):
      if self._is_number:
        return number.astype(self._specs[0].dtype)
      leaves = [table[number] for table in self._tables]
      return tree.unflatten_as(self._spec, leaves)
    if self._is_number:
      return tf.cast(number, self._dtypes[0])
    leaves = [tf.gather(tf.constant(table), number) for table in self._tables]
    return tree.unflatten_as(self._spec, leaves)

  def from_action(self, action: types.Nest) -> tf.Tensor:
    """Converts actions of the spec, `[..., *action]`, into int32 `[...]`.

    Integers beyond their bounds, as in padding, are clipped.
    """
    if self._is_number:  # A gather takes no small or unsigned integers.
      return tf.cast(action, tf.int32)
    # Sequences may have turned into tuples.
    leaves = tree.flatten_up_to(self._spec, action, check_types=False)
    parts = zip(leaves, self._minima, self._counts, self._strides)
    numbers = []
    for leaf, minimum, counts, strides in parts:
      steps = tf.cast(leaf, tf.int64) - minimum.astype(np.int64)
      steps = tf.clip_by_value(steps, 0, counts - 1)
      axes = range(leaf.shape.rank - counts.ndim, leaf.shape.rank)
      weighted = tf.cast(steps, tf.int32) * strides
      numbers.append(tf.reduce_sum(weighted, axis=list(axes)))
    return tf.add_n(numbers)

  def _split(self, numbers: np.ndarray) -> list[np.ndarray]:
    """Splits an array with a column per integer, `[..., K]`, into parts."""
    ends = np.cumsum([math.prod(spec.shape) for spec in self._specs])
    return [
      part.reshape((*numbers.shape[:-1], *spec.shape))
      for part, spec in zip(np.split(numbers, ends[:-1], -1), self._specs)
    ]
