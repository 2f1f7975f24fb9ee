"""Transitions from a replay table inside a program."""

from typing import cast

import tensorflow as tf

from repertory.components import adders, types
from repertory.components.anakin import replay_transport, sum_tree
from repertory.components.transports import experience as experience_lib


class TransitionTransport(replay_transport.ReplayTransport):
  """Cuts n-step transitions; the anchor is their first step.

  Transitions and returns are those of `adders.Transitions`.
  """

  def __init__(
    self,
    experience: experience_lib.Experience,
    num_environments: int,
    seed: int,
  ):
    """Initializes the table: see `ReplayTransport`."""
    items = cast(adders.Transitions, experience.items)
    self._items = items
    signature: types.Transition = experience.table.signature
    # Episodes of one step take most memory: two step records per transition.
    # The last n records may belong to incomplete transitions.
    num_items = -(-experience.table.max_size // num_environments)
    super().__init__(
      experience, num_environments, seed,
      num_records=2 * num_items + items.n_step,
      observation_spec=signature.observation,
      record_spec=replay_transport.StepRecord(
        signature.action, signature.reward, signature.discount, happened=(),
        ended=tf.TensorSpec([], tf.bool), extras=signature.extras,
      ),
      lead=0,
    )  # fmt: skip

  def begin(self, carry):
    super().begin(carry)
    # Steps of the open episodes.
    self._lengths = tf.Variable(
      tf.zeros([self._num_environments], tf.int32), trainable=False
    )

  def _complete(self, step, weight):
    """Completes the transition n steps old, or all at an episode's end."""
    n, size = self._items.n_step, self._num_environments
    lengths = tf.where(step.happened, self._lengths + 1, 0)  # [N]
    self._lengths.assign(lengths)
    ages = tf.range(n)[:, None]  # [n, 1], ages of transitions in steps
    is_open = (ages < lengths) & step.happened  # [n, N]
    done = is_open & (step.ended | tf.equal(ages, n - 1))  # [n, N]
    last = self._now - 1
    is_kept = last - tf.cast(ages, tf.int64) >= self._oldest  # [n, 1]
    held = done & is_kept
    starts = tf.stack([self._start_of(last - age) for age in range(n)])
    kept = self._tree.get(starts[:, None] + tf.range(size))  # [n, N]
    self._tree.set_runs(starts, size, tf.where(held, weight, kept))
    return replay_transport.count(done), replay_transport.count(held)

  def _cut(self, anchors):
    n = self._items.n_step
    rows = self._neighbors(anchors, range(n + 1))  # [B, n + 1]
    moments = self._moments
    rewards, discounts, ended = (
      sum_tree.gather(variable, rows[:, :n])
      for variable in (moments.reward, moments.discount, moments.ended)
    )
    limit = self._items.max_abs_reward
    if limit is not None:
      rewards = tf.clip_by_value(rewards, -limit, limit)
    total = tf.cast(rewards[:, 0], tf.float64)
    product = tf.cast(discounts[:, 0], tf.float64)
    length, continues = tf.ones_like(anchors), ~ended[:, 0]
    for i in range(1, n):
      longer = product * self._items.discount
      total = tf.where(
        continues, total + longer * tf.cast(rewards[:, i], tf.float64), total
      )
      longer = longer * tf.cast(discounts[:, i], tf.float64)
      product = tf.where(continues, longer, product)
      length += tf.cast(continues, tf.int32)
      continues &= ~ended[:, i]
    after = tf.gather(rows, length, batch_dims=1)  # [B]
    return types.Transition(
      observation=self._observations_at(rows[:, 0]),
      action=replay_transport.rows_of(moments.action, rows[:, 0]),
      reward=tf.cast(total, rewards.dtype),
      discount=tf.cast(product, discounts.dtype),
      next_observation=self._observations_at(after),
      extras=replay_transport.rows_of(moments.extras, rows[:, 0]),
    )

  def _observations_at(self, rows):
    return replay_transport.rows_of(self._observations[0], rows)
