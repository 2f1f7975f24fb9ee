"""Replay table inside a compiled program, of transitions or sequences."""

import abc
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from repertory.components import replay, types
from repertory.components.anakin import acting
from repertory.components.distributions import inverse_cdf
from repertory.components.runtime import loops, random_streams
from repertory.components.transports import experience as experience_lib

_BOOL = tf.TensorSpec([], tf.bool)

# Children per node: few levels, whose nodes are read in one piece.
_FAN_OUT = 32


class TensorSumTree(tf.Module):
  """Weights of items in variables of a program.

  Updates and samples cost O(log(number of items)).
  """

  def __init__(self, num_leaves: int):
    """Initializes all weights with 0."""
    super().__init__(name='sum_tree')
    sizes = [num_leaves]
    while sizes[-1] > 1:
      sizes.append(-(-sizes[-1] // _FAN_OUT))
    # Each level is padded to whole nodes; the last one is the total.
    self._levels = [
      tf.Variable(
        tf.zeros([-(-size // _FAN_OUT) * _FAN_OUT], tf.float64),
        trainable=False,
      )
      for size in sizes
    ]

  @property
  def leaves(self) -> tf.Variable:
    """The weights, float64, with trailing zeros."""
    return self._levels[0]

  def total(self) -> tf.Tensor:
    """Returns the sum of all weights, float64."""
    return gather(self._levels[-1], tf.constant([0]))[0]

  def get(self, indices: tf.Tensor) -> tf.Tensor:
    """Returns the weights of items, in the shape of `indices`."""
    return gather(self.leaves, indices)

  def set(self, indices: tf.Tensor, weights: tf.Tensor) -> None:
    """Sets float64 weights ≥ 0; repeated indices must have equal ones."""
    scatter(self.leaves, indices, weights)
    self._add_up(indices // _FAN_OUT)

  def set_runs(
    self, starts: tf.Tensor, length: int, weights: tf.Tensor
  ) -> None:
    """Sets weights `[K, L]` of runs of L items, as `set` does, but faster."""
    indices = starts[:, None] + tf.range(length)  # [K, L]
    scatter(self.leaves, tf.reshape(indices, [-1]), tf.reshape(weights, [-1]))
    # The nodes that a run can touch, perhaps with the last one repeated.
    count = (length + _FAN_OUT - 2) // _FAN_OUT + 1
    nodes = starts[:, None] // _FAN_OUT + tf.range(count)
    nodes = tf.minimum(nodes, (starts[:, None] + length - 1) // _FAN_OUT)
    self._add_up(tf.reshape(nodes, [-1]))

  def draw(self, uniforms: tf.Tensor) -> tf.Tensor:
    """Samples items in proportion to their weights, not all of them 0.

    Maps float64 numbers in [0, 1) to indices, int32, `[B]` each.
    """
    left = uniforms * self.total()
    node = tf.zeros(uniforms.shape, tf.int32)
    for level in reversed(self._levels[:-1]):
      node, left = _descend(level, node, left)
    return node

  def _add_up(self, nodes: tf.Tensor) -> None:
    """Updates the sums of first-level nodes, and of all nodes above."""
    for below, level in zip(self._levels, self._levels[1:]):
      children = nodes[:, None] * _FAN_OUT + tf.range(_FAN_OUT)
      scatter(level, nodes, tf.reduce_sum(gather(below, children), axis=1))
      nodes = nodes // _FAN_OUT


def _descend(
  level: tf.Variable, node: tf.Tensor, left: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Descends to the children that contain the remaining weight."""
  children = node[:, None] * _FAN_OUT + tf.range(_FAN_OUT)
  weights = gather(level, children)  # [B, fan-out]
  sums = tf.cumsum(weights, axis=1)
  place = inverse_cdf.find(sums, weights, left)
  before = tf.gather(
    tf.concat([tf.zeros_like(sums[:, :1]), sums], axis=1), place, batch_dims=1
  )
  # XLA may subtract before rounding, which can give less than 0.
  return node * _FAN_OUT + place, tf.maximum(left - before, 0.0)


# XLA supports these operations, unlike those of `tf.Variable`.


def gather(variable: tf.Variable, indices: tf.Tensor) -> tf.Tensor:
  """Reads rows, without copying the others."""
  return tf.raw_ops.ResourceGather(
    resource=variable.handle, indices=indices, dtype=variable.dtype
  )


def scatter(variable: tf.Variable, indices: tf.Tensor, rows: tf.Tensor) -> None:
  """Writes rows, int32 `[K]` and `[K, ...]`."""
  tf.raw_ops.ResourceScatterUpdate(
    resource=variable.handle, indices=indices, updates=rows
  )


class StepRecord(NamedTuple):
  """Step record of all environments, without observations: see `acting.Step`.

  Fields that a kind of item does not need are ().
  """

  action: Any
  reward: Any
  discount: Any
  happened: Any
  ended: Any
  extras: Any
  state: Any = ()  # Recurrent state of the policy.
  version: Any = ()  # Learner steps of the acting variables.


class ReplayTransport(acting.CompiledTransport):
  """Keeps the latest step records of all environments, and cuts sampled items.

  Each step record is stored once, however many items contain it. An item is
  identified by one of its step records, its *anchor*, which gets a weight in a
  sum tree when the item is complete: 1 for uniform sampling, otherwise its
  priority to the power of α. New items replace the oldest ones.

  An iteration is one step of all environments, followed by the updates that
  keep the replay ratio, as with a table elsewhere.
  """

  num_steps = 1

  def __init__(
    self,
    experience: experience_lib.Experience,
    num_environments: int,
    seed: int,
  ):
    """Initializes the table; `begin` creates its variables."""
    super().__init__(experience.table, experience.batch_size)
    table = experience.table
    self._items: Any = experience.items
    self._num_environments = num_environments
    num_items = -(-table.max_size // num_environments)
    self._num_records, self._lead = self._count_records(num_items)
    self._observation_spec, self._record_spec = self._step_specs()
    self._exponent = table.priority_exponent
    self._min_priority = experience.min_priority
    self.has_priorities = experience.min_priority is not None
    limit: Any = table.rate_limit
    self._spi, self._min_size = limit.samples_per_insert, limit.min_size
    most = num_environments * experience.items.max_items_per_step
    self.max_updates = int(most * self._spi // self._batch_size) + 2
    self._seed = seed

  @abc.abstractmethod
  def _count_records(self, num_items: int) -> tuple[int, int]:
    """Returns M, step records per environment for a number of items of each.

    They are enough however short the episodes are. Also returns the maximum
    number of step records of an item before its anchor.
    """

  @abc.abstractmethod
  def _step_specs(self) -> tuple[types.Nest, StepRecord]:
    """Returns specs of an observation and of a step record."""

  @abc.abstractmethod
  def _complete(
    self, step: acting.Step, weight: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Sets the weights of the items that a step completes.

    Items whose anchors were already replaced get none, because it would never
    be removed. Returns the numbers of completed items and of weights.
    """

  @abc.abstractmethod
  def _cut(self, anchors: tf.Tensor) -> types.Nest:
    """Cuts the items with the given anchors, int32 `[B]`."""

  @property
  def num_bytes(self):
    specs = tree.flatten((self._observation_spec, self._record_spec))
    row = sum(spec.dtype.size * spec.shape.num_elements() for spec in specs)
    return row * self._num_records * self._num_environments

  def begin(self, carry: acting.Carry) -> None:
    """Creates the variables, and writes the first observations."""
    self._tree = TensorSumTree(self._num_records * self._num_environments)
    # Each observation has a flag: whether it is an episode's first.
    self._observations = self._make_rows((self._observation_spec, _BOOL))
    self._moments = self._make_rows(self._record_spec)
    counters = random_streams.initial_counters(
      self._seed, range(self._batch_size)
    )
    self._counters = tf.Variable(counters, trainable=False)
    counts = [tf.Variable(np.int64(0), trainable=False) for _ in range(5)]
    # Indices of the newest observation, and of the oldest step with items.
    self._now, self._oldest, *counts = counts
    self._inserts, self._samples, self._size = counts
    self._write_observation(carry)

  def collect(self, act, carry, version, max_priority):
    carry, step, episodes = act(carry)
    self._write(self._moments, self._record(step, version))
    self._now.assign_add(1)
    # Removes the items that begin at the step that is overwritten next.
    begin = self._now + self._lead - self._num_records
    self._remove_until(lambda: self._oldest <= begin)
    self._write_observation(carry)
    weight = tf.constant(1.0, tf.float64)
    if self._exponent is not None:
      weight = max_priority**self._exponent
    completed, kept = self._complete(step, weight)
    self._inserts.assign_add(completed)
    self._size.assign_add(kept)
    self._remove_until(lambda: self._size > self._table.max_size)
    episodes = tree.map_structure(lambda leaf: leaf[None], episodes)
    return carry, (), episodes

  def is_due(self, held, num_updates):
    del held
    samples = self._samples + self._batch_size
    items = tf.maximum(self._inserts - self._min_size, 0)
    target = tf.cast(items, tf.float64) * self._spi
    is_due = tf.cast(samples, tf.float64) <= target
    return is_due & (self._size >= self._min_size)

  def sample(self, held, num_updates):
    del held, num_updates
    high, low, counters = random_streams.next_uniforms(
      self._counters.read_value()
    )
    self._counters.assign(counters)
    uniforms = tf.cast(high, tf.float64) + tf.cast(low, tf.float64) * 2.0**-24
    anchors = self._tree.draw(uniforms)  # [B]
    probabilities = self._tree.get(anchors) / self._tree.total()
    self._samples.assign_add(self._batch_size)
    return types.Sample(
      self._cut(anchors),
      keys=tf.cast(anchors, tf.uint64),
      probabilities=probabilities,
      table_sizes=tf.fill([self._batch_size], self._size.read_value()),
    )

  def set_priorities(self, sample, priorities, finite):
    anchors = tf.cast(sample.keys, tf.int32)
    priorities = tf.maximum(tf.cast(priorities, tf.float64), self._min_priority)
    weights = priorities**self._exponent
    # Of an item that was sampled twice, the last priority counts.
    size = self._batch_size
    is_same = tf.equal(anchors[:, None], anchors)  # [B, B]
    last = tf.reduce_max(tf.where(is_same, tf.range(size), 0), axis=1)
    weights = tf.gather(weights, last)
    # Not `tf.cond`, for which XLA would copy the whole tree.
    self._tree.set(anchors, tf.where(finite, weights, self._tree.get(anchors)))

  def statuses(self) -> Mapping[str, replay.TableInfo]:
    counts = (self._size, self._inserts, self._samples)
    size, inserts, samples = (int(count.numpy()) for count in counts)
    info = replay.TableInfo(size, self._table.max_size, inserts, samples)
    return {self._table.name: info}

  def _record(self, step: acting.Step, version: tf.Tensor) -> StepRecord:
    """Returns the fields to keep of a step, `[N, ...]`."""
    extras, state = step.extras, ()
    if self._record_spec.version != ():  # Of sequences.
      extras, state = extras or types.SequenceExtras()
    record = StepRecord(
      step.action, step.reward, step.discount, step.happened, step.ended,
      extras, state, tf.fill([self._num_environments], version),
    )  # fmt: skip
    pairs = zip(record, self._record_spec)
    return StepRecord(*(() if spec == () else leaf for leaf, spec in pairs))

  def _make_rows(self, spec: types.Nest) -> types.Nest:
    """Creates variables for the step records of all environments.

    Row m · N + b holds step m, modulo M, of environment b.
    """
    size = self._num_records * self._num_environments
    return tree.map_structure(
      lambda leaf: tf.Variable(
        tf.zeros([size, *leaf.shape], leaf.dtype), trainable=False
      ),
      spec,
    )

  def _start_of(self, moment: tf.Tensor) -> tf.Tensor:
    """Returns the row of the first environment at a step, int32."""
    place = tf.math.floormod(moment, self._num_records)
    return tf.cast(place, tf.int32) * self._num_environments

  def _write(self, variables: types.Nest, now: types.Nest) -> None:
    """Writes the rows of the current step."""
    start = self._start_of(self._now.read_value())
    rows = start + tf.range(self._num_environments)
    pairs = zip(tree.flatten(variables), tree.flatten(now), strict=True)
    for variable, leaf in pairs:
      scatter(variable, rows, leaf)

  def _write_observation(self, carry: acting.Carry) -> None:
    first = tf.equal(carry.step_type, acting.FIRST)
    self._write(self._observations, (carry.observation, first))

  def _remove_until(self, is_too_old) -> None:
    """Removes the items of the oldest steps while a condition holds."""
    size = self._num_environments

    def remove(i):
      start = self._start_of(self._oldest.read_value())
      weights = self._tree.get(start + tf.range(size))
      removed = tf.reduce_sum(tf.cast(weights > 0, tf.int64))
      self._tree.set_runs(start[None], size, tf.zeros([1, size], tf.float64))
      self._size.assign_sub(removed)
      self._oldest.assign_add(1)
      return i + 1

    tf.while_loop(
      lambda i: is_too_old(),
      remove,
      [tf.constant(0)],
      maximum_iterations=self._num_records,
      parallel_iterations=1,
    )

  def _neighbors(self, anchors: tf.Tensor, offsets: range) -> tf.Tensor:
    """Returns rows at offsets of anchors, same environment, `[B, T]`."""
    size, moments = self._num_environments, self._num_records
    places = anchors[:, None] // size + tf.constant(list(offsets))
    places = tf.math.floormod(places, moments)
    return places * size + (anchors % size)[:, None]


class TransitionTransport(ReplayTransport):
  """Cuts n-step transitions; the anchor is their first step.

  Transitions and returns are those of `adders.Transitions`.
  """

  def _count_records(self, num_items):
    # Episodes of one step take most memory: two step records per transition.
    # The last n records may belong to incomplete transitions.
    return 2 * num_items + self._items.n_step, 0

  def _step_specs(self):
    signature: types.Transition = self._table.signature
    return signature.observation, StepRecord(
      signature.action, signature.reward, signature.discount, happened=(),
      ended=_BOOL, extras=signature.extras,
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
    return _count(done), _count(held)

  def _cut(self, anchors):
    n = self._items.n_step
    rows = self._neighbors(anchors, range(n + 1))  # [B, n + 1]
    moments = self._moments
    rewards, discounts, ended = (
      gather(variable, rows[:, :n])
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
      observation=_rows_of(self._observations[0], rows[:, 0]),
      action=_rows_of(moments.action, rows[:, 0]),
      reward=tf.cast(total, rewards.dtype),
      discount=tf.cast(product, discounts.dtype),
      next_observation=_rows_of(self._observations[0], after),
      extras=_rows_of(moments.extras, rows[:, 0]),
    )


class SequenceTransport(ReplayTransport):
  """Cuts sequences; the anchor is the first step of the loss window.

  Sequences and padding are those of `adders.Sequences`. The policy's state is
  stored for every step, because any step may begin a sequence.
  """

  def _count_records(self, num_items):
    # Episodes that end with their first loss window take most memory: all its
    # steps and the last observation per sequence. The last `length` steps may
    # belong to incomplete sequences.
    items = self._items
    gap = items.stride if items.across_episodes else items.window + 1
    return num_items * gap + items.length, items.burn_in

  def _step_specs(self):
    signature: types.Sequence = self._table.signature
    step = tree.map_structure(
      lambda spec: tf.TensorSpec(spec.shape[1:], spec.dtype),
      signature._replace(state=(), version=()),
    )
    return step.observation, StepRecord(
      step.action, step.reward, step.discount, _BOOL, _BOOL, step.extras,
      signature.state, signature.version,
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
    return _count(done), _count(held)

  def _cut(self, anchors):
    items, moments = self._items, self._moments
    burn_in = items.burn_in
    rows = self._neighbors(anchors, range(-burn_in, items.length - burn_in))
    observations, first = self._observations
    seen = self._item_mask(anchors, rows)  # [B, T + 1]
    steps = rows[:, :-1]
    happened = gather(moments.happened, steps)
    valid = seen[:, :-1] & seen[:, 1:] & happened  # [B, T]
    begins = tf.argmax(tf.cast(seen, tf.int32), 1, tf.int32)  # [B]
    begin_rows = tf.gather(rows, begins, batch_dims=1)
    is_begin_valid = gather(moments.happened, begin_rows)
    return types.Sequence(
      observation=_rows_of(observations, rows, seen),
      first=_rows_of(first, rows, seen),
      action=_rows_of(moments.action, steps, valid),
      reward=_rows_of(moments.reward, steps, valid),
      discount=_rows_of(moments.discount, steps, valid),
      mask=valid,
      extras=_rows_of(moments.extras, steps, valid),
      state=_rows_of(moments.state, begin_rows, is_begin_valid),
      version=_rows_of(moments.version, begin_rows),
    )

  def _item_mask(self, anchors: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Returns the mask of rows `[B, T + 1]` that belong to the items."""
    items, burn_in = self._items, self._items.burn_in
    if items.across_episodes:  # From the very first step.
      offsets = tf.range(-burn_in, items.length - burn_in)
      return self._times_of(anchors)[:, None] + tf.cast(offsets, tf.int64) >= 0
    ended = gather(self._moments.ended, rows[:, burn_in:-1])
    # Forward from the anchor, until an episode's last observation.
    after = tf.math.cumprod(tf.cast(~ended, tf.int32), axis=1, exclusive=True)
    parts = [tf.ones_like(after[:, :1]), after]
    if burn_in:
      # Backward from the anchor, until the episode's first observation.
      first = gather(self._observations[1], rows[:, 1 : burn_in + 1])
      begun = tf.cast(~first, tf.int32)
      parts.insert(0, tf.math.cumprod(begun, axis=1, reverse=True))
    return tf.cast(tf.concat(parts, axis=1), tf.bool)

  def _times_of(self, anchors: tf.Tensor) -> tf.Tensor:
    """Returns the steps of anchors, counted from the very first step."""
    places = tf.cast(anchors // self._num_environments, tf.int64)
    ages = tf.math.floormod(self._now - places, self._num_records)
    return self._now - ages


def _count(which: tf.Tensor) -> tf.Tensor:
  """Returns the number of true entries, int64."""
  return tf.reduce_sum(tf.cast(which, tf.int64))


def _rows_of(
  variables: types.Nest, rows: tf.Tensor, kept: tf.Tensor | None = None
) -> types.Nest:
  """Reads rows of a nest of variables; those not `kept` become zeros."""
  nest = tree.map_structure(lambda v: gather(v, rows), variables)
  return nest if kept is None else loops.zero_unless(kept, nest)
