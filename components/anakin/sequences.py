"""Sequences from a replay table inside a program."""

from typing import cast

import numpy as np
import tensorflow as tf
import tree

from repertory.components import adders, types
from repertory.components.anakin import replay_transport, sum_tree
from repertory.components.transports import experience as experience_lib

_BOOL = tf.TensorSpec([], tf.bool)


class SequenceTransport(replay_transport.ReplayTransport):
  """Cuts sequences; the anchor is the first step of the loss window.

  Sequences and padding are those of `adders.Sequences`. The policy's state is
  stored for every step, because any step may begin a sequence.
  """

  def __init__(
    self,
    experience: experience_lib.Experience,
    num_environments: int,
    seed: int,
  ):
    """Initializes the table: see `ReplayTransport`."""
    items = cast(adders.Sequences, experience.items)
    self._items = items
    signature: types.Sequence = experience.table.signature
    # A step of sequences.
    step = tree.map_structure(
      lambda spec: tf.TensorSpec(spec.shape[1:], spec.dtype),
      signature._replace(state=(), version=()),
    )
    # Episodes that end with their first loss window take most memory: all its
    # steps and the last observation per sequence. The last `length` steps may
    # belong to incomplete sequences.
    gap = items.stride if items.across_episodes else items.window + 1
    num_items = -(-experience.table.max_size // num_environments)
    super().__init__(
      experience, num_environments, seed,
      num_records=num_items * gap + items.length,
      observation_spec=step.observation,
      record_spec=replay_transport.StepRecord(
        step.action, step.reward, step.discount, _BOOL, _BOOL, step.extras,
        signature.state, signature.version,
      ),
      lead=items.burn_in,
    )  # fmt: skip

  def begin(self, carry):
    super().begin(carry)
    # First step of each open item.
    self._starts = tf.Variable(
      np.full([self._num_environments], -self._items.burn_in, np.int64),
      trainable=False,
    )

  def _complete(self, step, weight):
    """Completes items of full length, and items of ended episodes."""
    items, now = self._items, self._now.read_value()
    starts = self._starts.read_value()  # [N]
    if not items.across_episodes:
      starts = tf.where(step.happened, starts, now - items.burn_in)
    done = tf.equal(now - starts, items.length - 1)
    if not items.across_episodes:
      done |= step.ended
    size = self._num_environments
    places = tf.math.floormod(starts + items.burn_in, self._num_records)
    anchors = tf.cast(places, tf.int32) * size + tf.range(size)
    held = done & (starts + items.burn_in >= self._oldest)
    self._tree.set(anchors, tf.where(held, weight, self._tree.get(anchors)))
    self._starts.assign(starts + tf.cast(done, tf.int64) * items.stride)
    return replay_transport.count(done), replay_transport.count(held)

  def _cut(self, anchors):
    items, moments = self._items, self._moments
    burn_in = items.burn_in
    rows = self._neighbors(anchors, range(-burn_in, items.length - burn_in))
    observations, first = self._observations
    seen = self._item_mask(anchors, rows)  # [B, T + 1]
    steps = rows[:, :-1]
    happened = sum_tree.gather(moments.happened, steps)
    valid = seen[:, :-1] & seen[:, 1:] & happened  # [B, T]
    begins = tf.argmax(tf.cast(seen, tf.int32), 1, tf.int32)  # [B]
    begin_rows = tf.gather(rows, begins, batch_dims=1)
    is_begin_valid = sum_tree.gather(moments.happened, begin_rows)
    return types.Sequence(
      observation=replay_transport.rows_of(observations, rows, seen),
      first=replay_transport.rows_of(first, rows, seen),
      action=replay_transport.rows_of(moments.action, steps, valid),
      reward=replay_transport.rows_of(moments.reward, steps, valid),
      discount=replay_transport.rows_of(moments.discount, steps, valid),
      mask=valid,
      extras=replay_transport.rows_of(moments.extras, steps, valid),
      state=replay_transport.rows_of(moments.state, begin_rows, is_begin_valid),
      version=replay_transport.rows_of(moments.version, begin_rows),
    )

  def _item_mask(self, anchors: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Returns the mask of rows `[B, T + 1]` that belong to the items."""
    items, burn_in = self._items, self._items.burn_in
    if items.across_episodes:  # From the very first step.
      offsets = tf.range(-burn_in, items.length - burn_in)
      return self._times_of(anchors)[:, None] + tf.cast(offsets, tf.int64) >= 0
    ended = sum_tree.gather(self._moments.ended, rows[:, burn_in:-1])
    # Forward from the anchor, until an episode's last observation.
    after = tf.math.cumprod(tf.cast(~ended, tf.int32), axis=1, exclusive=True)
    parts = [tf.ones_like(after[:, :1]), after]
    if burn_in:
      # Backward from the anchor, until the episode's first observation.
      first = sum_tree.gather(self._observations[1], rows[:, 1 : burn_in + 1])
      begun = tf.cast(~first, tf.int32)
      parts.insert(0, tf.math.cumprod(begun, axis=1, reverse=True))
    return tf.cast(tf.concat(parts, axis=1), tf.bool)

  def _times_of(self, anchors: tf.Tensor) -> tf.Tensor:
    """Returns the steps of anchors, counted from the very first step."""
    places = tf.cast(anchors // self._num_environments, tf.int64)
    ages = tf.math.floormod(self._now - places, self._num_records)
    return self._now - ages
