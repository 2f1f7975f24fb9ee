"""Learner that also acts, in one compiled program, and its snapshots.

The architecture is Anakin's, see https://arxiv.org/abs/2104.06272, section 3.
"""

import functools
import glob
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from repertory.components import (
  interfaces,
  learners,
  loggers,
  replay,
  transports,
  types,
)
from repertory.components.anakin import acting
from repertory.components.checkpoints import checkpointing
from repertory.components.replay import local
from repertory.components.runtime import compilation, loops

_INT32, _INT64 = tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.int64)
# Maximum number of rows that a call returns: of environments and updates.
_MAX_ROWS = 2**18
_MAX_TURNS = 512


class EpisodeBatch(NamedTuple):
  """Environment steps of a call, and ended episodes' returns and lengths."""

  num_steps: int
  episodes: list[tuple[float, int]]


class _Result(NamedTuple):
  """Results of a call.

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


class CompiledLearner(learners.LearnerState):
  """Alternates acting and learning in a compiled program.

  It counts and logs like other learners. Its checkpoints include the state of
  acting and experience: see `save_acting`. A non-finite update is undone; if it
  ends the run, the program stops there.

  Attributes:
    max_turns: Maximum number of iterations per `advance`.
  """

  def __init__(
    self,
    policy: interfaces.Policy,
    environments: Any,
    transport: acting.CompiledTransport,
    update: interfaces.Update,
    carry: acting.Carry,
    *,
    logger: loggers.Logger | None = None,
    jit_compile: bool = False,
    divergence: learners.Divergence | None = None,
  ):
    """Compiles the program, which starts from `carry`.

    The policy has the update's variables. For `logger` and `divergence` see
    `LearnerState`; `jit_compile` is for XLA.
    """
    super().__init__(update, logger, divergence)
    transport.begin(carry)
    self._carry = carry
    self._transport = transport
    self._act = functools.partial(acting.step, policy, environments)
    settings = self._divergence
    self._max_skips = settings.max_skips if settings.action == 'skip' else 0
    self._guarded = learners.undone_unless_finite(update)
    rows = max(
      transport.num_steps * carry.step_type.shape[0], transport.max_updates
    )
    self.max_turns = max(1, min(_MAX_TURNS, _MAX_ROWS // rows))
    # The last batch whose update was not finite.
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
    largest, specs = tf.TensorSpec([], tf.float64), compilation.specs_of(carry)
    self.compiled = compilation.CompiledFunction(
      self._call, (_INT32, _INT64, _INT32, largest, specs), jit_compile
    )

  def step(self) -> None:
    """Runs one iteration."""
    self.advance(1)

  def advance(self, num_turns: int) -> EpisodeBatch:
    """Runs at most `max_turns` iterations of steps and due updates.

    Raises:
      FloatingPointError: If an update was not finite and may not be skipped.
    """
    with self._lock:
      leaves = self.compiled(
        tf.constant(num_turns, tf.int32),
        tf.constant(self._steps, tf.int64),
        tf.constant(self._num_skipped_in_a_row, tf.int32),
        tf.constant(self._max_priority, tf.float64),
        *tree.flatten(self._carry),
      )
      self._carry, outcome = self.compiled.unflatten(leaves)
      num_updates = int(outcome.num_updates)
      before = self._steps
      self._steps += num_updates
      self._max_priority = float(outcome.max_priority)
    self._process_updates(before, num_updates, outcome)
    # In order of time, then of rows.
    episodes = tree.map_structure(lambda leaf: leaf.numpy(), outcome.episodes)
    returns, lengths = (
      values[episodes.ended].tolist()
      for values in (episodes.episode_return, episodes.episode_length)
    )
    num_steps = int(episodes.num_steps.sum())
    return EpisodeBatch(num_steps, list(zip(returns, lengths)))

  def save_acting(self) -> dict[str, np.ndarray]:
    """Returns the state of acting and experience, as arrays by name."""
    return {name: leaf.numpy() for name, leaf in self._acting_state().items()}

  def restore_acting(self, arrays: Mapping[str, np.ndarray]) -> None:
    """Restores the result of `save_acting`.

    Raises:
      ValueError: Naming the mismatch; nothing was changed then.
    """
    # Older checkpoints call them 'road/...'.
    arrays = {
      re.sub('^road/', 'transport/', name): array
      for name, array in arrays.items()
    }
    state = self._acting_state()
    learners.check_matches(
      arrays, {name: tuple(leaf.shape) for name, leaf in state.items()}
    )
    for name, variable in self._transport.saved.items():
      variable.assign(arrays[f'transport/{name}'])
    carry = [tf.constant(arrays[n]) for n in state if n.startswith('carry/')]
    self._carry = tree.unflatten_as(self._carry, carry)

  def _acting_state(self) -> dict[str, Any]:
    """Returns the tensors and variables to save, by name."""
    carry = enumerate(tree.flatten(self._carry))
    saved = self._transport.saved.items()
    return {
      **{f'carry/{i:04d}': leaf for i, leaf in carry},
      **{f'transport/{name}': variable for name, variable in saved},
    }

  def statuses(self) -> Mapping[str, replay.TableInfo]:
    """Returns the status of all tables, by name."""
    return self._transport.statuses()

  def count_items(self) -> dict[str, dict[str, int]]:
    """Returns the inserts and samples of each table, by name."""
    return {
      name: {'inserts': status.inserts, 'samples': status.samples}
      for name, status in self.statuses().items()
    }

  def _process_updates(
    self, before: int, num_updates: int, outcome: _Result
  ) -> None:
    """Checks and logs the updates of a call."""
    metrics = {
      name: values.numpy()[:num_updates]
      for name, values in outcome.metrics.items()
    }
    columns = dict(metrics)
    if not isinstance(outcome.lag, tuple):
      columns['policy_lag'] = outcome.lag.numpy()[:num_updates]

    def log_until(end: int) -> None:
      """Logs the finite updates from `start` on."""
      if start < end:
        self._num_skipped_in_a_row = 0
        self._log_rows({name: v[start:end] for name, v in columns.items()})

    start = 0  # First update that is not logged yet.
    finite = outcome.finite.numpy()[:num_updates]
    for i in np.flatnonzero(~finite).tolist():
      log_until(i)
      row = {name: values[i] for name, values in metrics.items()}
      self._judge(before + i + 1, row, False, self._read_bad_sample)
      self._log({name: values[i] for name, values in columns.items()})
      start = i + 1
    log_until(num_updates)

  def _read_bad_sample(self) -> types.Sample:
    return tree.map_structure(lambda v: v.numpy(), self._bad_sample)

  def _call(self, num_turns, learner_steps, num_skips, max_priority, carry):
    """Runs `num_turns` iterations, fewer if an update ends the run."""
    transport = self._transport
    shape = [transport.num_steps, carry.step_type.shape[0]]
    episodes_spec = acting.EndedEpisodes(
      tf.TensorSpec(shape[:1], tf.int64), tf.TensorSpec(shape, tf.bool),
      tf.TensorSpec(shape, tf.float64), tf.TensorSpec(shape, tf.int64),
    )  # fmt: skip
    episodes = loops.make_arrays(episodes_spec, self.max_turns)
    max_updates = self.max_turns * transport.max_updates
    learned = _Learned(
      tf.constant(0),
      num_skips,
      tf.constant(False),
      max_priority,
      loops.make_arrays(self._learned_spec, max_updates),
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
    return carry, _Result(
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


_FILE = 'program.npz'


class CompiledSnapshots(transports.Snapshots):
  """Snapshots of environments, policy state and experience of a program.

  A restored program resumes exactly.
  """

  def __init__(self, learner: CompiledLearner, directory: str):
    """Restores a snapshot in a folder of the directory, and removes it.

    Raises:
      CheckpointError: If the snapshot does not fit the program.
    """
    self._learner = learner
    self._directory = directory
    pattern = os.path.join(glob.escape(directory), '*', _FILE)
    if paths := sorted(glob.glob(pattern)):
      with local.reading(paths[-1]), open(paths[-1], 'rb') as file:
        learner.restore_acting(checkpointing.read_arrays(file))
    self._counts = learner.count_items()
    self.remove_snapshots()

  def __str__(self) -> str:
    return 'the program'

  def flush(self) -> None:
    """Does nothing, because no update is pending."""

  def describe(self):
    return {
      'transport': transports.COMPILED,
      'is_exact': True,
      'tables': self._learner.count_items(),
    }

  def check_restored(self, checkpoint):
    expected = checkpoint.state['tables']
    if self._counts != expected:
      raise checkpointing.CheckpointError(
        f'The tables should resume from {expected}, as in checkpoint '
        f'{checkpoint.path}, but restored {self._counts}.'
      )

  def take_snapshot(self):
    arrays = self._learner.save_acting()

    def write() -> str:
      folder = os.path.join(self._directory, 'program')
      os.makedirs(folder)
      checkpointing.write_arrays(os.path.join(folder, _FILE), arrays.items())
      return folder

    return write

  def remove_snapshots(self):
    replay.remove_checkpoints(self._directory)
