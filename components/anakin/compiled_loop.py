"""Acting and learning as one compiled TensorFlow program.

The architecture is Anakin's, see https://arxiv.org/abs/2104.06272, section 3.
"""

from typing import Any, NamedTuple

import tensorflow as tf
import tree

from repertory.components import interfaces, learners, types
from repertory.components.anakin import acting
from repertory.components.runtime import compilation, loops

_INT64 = tf.TensorSpec([], tf.int64)
# Maximum number of rows that a call returns: of environments and updates.
_MAX_ROWS = 2**18
_MAX_TURNS = 512


class LoopResult(NamedTuple):
  """Results of a call of the program.

  Attributes:
    episodes: Episodes of all steps, `[max_turns · num_steps, ...]`; zeros after
      the last step.
    num_updates: Number of updates, int32.
    metrics: Metrics of the updates by name, `[max_updates]`; zeros after the
      last one.
    finite: Whether each update was finite, bool `[max_updates]`.
    lag: Mean age of the acting variables in updates, float64 `[max_updates]`;
      () if items have no version.
    max_priority: Largest priority so far, float64.
  """

  episodes: acting.EndedEpisodes
  num_updates: tf.Tensor
  metrics: Any
  finite: tf.Tensor
  lag: Any
  max_priority: tf.Tensor


class _Learned(NamedTuple):
  """Progress of the updates of a call."""

  num_updates: tf.Tensor
  skips: tf.Tensor  # Consecutive ones.
  stopped: tf.Tensor
  max_priority: tf.Tensor
  arrays: Any


class CompiledLoop:
  """Compiled loop of environment steps and the updates that are due.

  A non-finite update is undone. If it ends the run, the loop stops there, and
  `bad_sample` has its batch.
  """

  def __init__(
    self,
    act: acting.Act,
    transport: acting.CompiledTransport,
    update: interfaces.Update,
    carry: acting.Carry,
    max_skips: int,
    jit_compile: bool,
  ):
    """Compiles a loop with up to `max_skips` consecutive undone updates."""
    self._act = act
    self._transport = transport
    self._max_skips = max_skips
    self._guarded = learners.undone_unless_finite(update)
    rows = max(
      transport.num_steps * carry.step_type.shape[0], transport.max_updates
    )
    self.max_turns = max(1, min(_MAX_TURNS, _MAX_ROWS // rows))
    self._max_updates = self.max_turns * transport.max_updates
    self._bad_sample = tree.map_structure(
      lambda spec: tf.Variable(
        tf.zeros(spec.shape, spec.dtype), trainable=False
      ),
      transport.sample_spec,
    )
    # Traced separately first, because loops cannot create variables.
    self._learned_spec, _ = compilation.trace(
      self._learn_from, (transport.sample_spec, _INT64)
    )
    self.compiled = compilation.CompiledFunction(
      self._call,
      (
        tf.TensorSpec([], tf.int32),
        _INT64,
        tf.TensorSpec([], tf.int32),
        tf.TensorSpec([], tf.float64),
        compilation.specs_of(carry),
      ),
      jit_compile,
    )

  @property
  def bad_sample(self) -> types.Sample:
    """The last batch whose update was not finite."""
    return tree.map_structure(lambda v: v.numpy(), self._bad_sample)

  def __call__(
    self,
    num_turns: int,
    learner_steps: int,
    num_skips: int,
    max_priority: float,
    carry: acting.Carry,
  ) -> tuple[acting.Carry, LoopResult]:
    """Runs `num_turns` iterations, at most `max_turns`, from the last state.

    Fewer if an update diverges and, with `num_skips` updates undone before it,
    may not be skipped.
    """
    leaves = self.compiled(
      tf.constant(num_turns, tf.int32),
      tf.constant(learner_steps, tf.int64),
      tf.constant(num_skips, tf.int32),
      tf.constant(max_priority, tf.float64),
      *tree.flatten(carry),
    )
    return self.compiled.unflatten(leaves)

  def _call(self, num_turns, learner_steps, num_skips, max_priority, carry):
    transport = self._transport
    episodes_spec = acting.episodes_spec(
      transport.num_steps, carry.step_type.shape[0]
    )
    episodes = loops.make_arrays(episodes_spec, self.max_turns)
    learned = _Learned(
      tf.constant(0),
      num_skips,
      tf.constant(False),
      max_priority,
      loops.make_arrays(self._learned_spec, self._max_updates),
    )

    def should_continue(i, carry, episodes, learned):
      return (i < num_turns) & ~learned.stopped

    def run_iteration(i, carry, episodes, learned):
      version = learner_steps + tf.cast(learned.num_updates, tf.int64)
      carry, held, ended = transport.collect(
        self._act, carry, version, learned.max_priority
      )
      episodes = loops.write(episodes, i, ended)
      learned = self._learn(held, learned, learner_steps)
      return i + 1, carry, episodes, learned

    _, carry, episodes, learned = tf.while_loop(
      should_continue,
      run_iteration,
      (tf.constant(0), carry, episodes, learned),
      maximum_iterations=self.max_turns,
      parallel_iterations=1,
    )
    episodes = tree.map_structure(
      loops.merge_axes, loops.stack(episodes, episodes_spec)
    )
    metrics, finite, lag = loops.stack(learned.arrays, self._learned_spec)
    return carry, LoopResult(
      episodes, learned.num_updates, metrics, finite, lag,
      learned.max_priority,
    )  # fmt: skip

  def _learn(
    self, held: types.Nest, learned: _Learned, learner_steps: tf.Tensor
  ) -> _Learned:
    """Runs the updates that are due."""
    transport = self._transport

    def is_due(j, learned):
      return transport.is_due(held, j) & ~learned.stopped

    def update(j, learned):
      sample = transport.sample(held, j)
      steps = learner_steps + tf.cast(learned.num_updates, tf.int64)
      kept, priorities = self._learn_from(sample, steps)
      finite = kept[1]
      largest = learned.max_priority
      if priorities is not None and transport.has_priorities:
        transport.set_priorities(sample, priorities, finite)
        new = tf.cast(tf.reduce_max(priorities), tf.float64)
        largest = tf.where(finite, tf.maximum(largest, new), largest)
      skips = tf.where(finite, 0, learned.skips + 1)
      return j + 1, _Learned(
        learned.num_updates + 1,
        skips,
        skips > self._max_skips,
        largest,
        loops.write(learned.arrays, learned.num_updates, kept),
      )

    _, learned = tf.while_loop(
      is_due,
      update,
      (tf.constant(0), learned),
      maximum_iterations=transport.max_updates,
      parallel_iterations=1,
    )
    return learned

  def _learn_from(self, sample: types.Sample, learner_steps: tf.Tensor):
    """Runs an update; returns its recorded results, and priorities."""
    result, finite = self._guarded(sample)

    def keep_sample():
      tree.map_structure(
        lambda variable, leaf: variable.assign(leaf), self._bad_sample, sample
      )

    tf.cond(finite, lambda: None, keep_sample)
    lag = ()
    if isinstance(sample.data, types.Sequence):
      lags = tf.cast(learner_steps - sample.data.version, tf.float64)
      lag = tf.reduce_mean(lags)
    return (result.metrics, finite, lag), result.priorities
