"""Replay table inside a compiled program."""

import abc
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from repertory.components import replay, types
from repertory.components.anakin import acting, compiled_transport, sum_tree
from repertory.components.runtime import loops, random_streams
from repertory.components.transports import experience as experience_lib


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


class ReplayTransport(compiled_transport.CompiledTransport):
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
    *,
    num_records: int,
    observation_spec: types.Nest,
    record_spec: StepRecord,
    lead: int,
  ):
    """Initializes the table; `begin` creates its variables.

    Args:
      num_records: M, step records per environment that are enough for
        `max_size` items, however short the episodes are.
      observation_spec: Specs of an observation, as `tf.TensorSpec`s.
      record_spec: Specs of a step record of one environment.
      lead: Maximum number of step records of an item before its anchor.
    """
    super().__init__(experience.table, experience.batch_size)
    table = experience.table
    self._num_environments = num_environments
    self._num_records = num_records
    self._observation_spec, self._record_spec = observation_spec, record_spec
    self._lead = lead
    self._exponent = table.priority_exponent
    self._min_priority = experience.min_priority
    self.has_priorities = experience.min_priority is not None
    limit: Any = table.rate_limit
    self._spi, self._min_size = limit.samples_per_insert, limit.min_size
    most = num_environments * experience.items.max_items_per_step
    self.max_updates = int(most * self._spi // self._batch_size) + 2
    self._seed = seed

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

  def begin(self, carry):
    """Creates the variables, and writes the first observations."""
    self._tree = sum_tree.TensorSumTree(
      self._num_records * self._num_environments
    )
    # Each observation has a flag: whether it is an episode's first.
    self._observations = self._make_rows(
      (self._observation_spec, tf.TensorSpec([], tf.bool))
    )
    self._moments = self._make_rows(self._record_spec)
    counters = random_streams.initial_counters(
      self._seed, range(self._batch_size)
    )
    self._counters = tf.Variable(counters, trainable=False)
    # Indices of the newest observation, and of the oldest step with items.
    self._now, self._oldest = _count(), _count()
    self._inserts, self._samples, self._size = _count(), _count(), _count()
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
      sum_tree.scatter(variable, rows, leaf)

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


def _count() -> tf.Variable:
  return tf.Variable(np.int64(0), trainable=False)


def count(which: tf.Tensor) -> tf.Tensor:
  """Returns the number of true entries, int64."""
  return tf.reduce_sum(tf.cast(which, tf.int64))


def rows_of(
  variables: types.Nest, rows: tf.Tensor, kept: tf.Tensor | None = None
) -> types.Nest:
  """Reads rows of a nest of variables; those not `kept` become zeros."""
  nest = tree.map_structure(lambda v: sum_tree.gather(v, rows), variables)
  return nest if kept is None else loops.zero_unless(kept, nest)
