"""Nodes that compute the targets of replayed items."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf
import tree

from repertory.components import (
  compilation,
  datasets,
  programs,
  roads,
  variables,
)
from repertory.launch.coordination import rates, reports
from repertory.launch.nodes import data_changes, lost_items, node
from repertory.launch.runs import offline
from repertory.launch.runs import session as session_lib

# How often it reports more than that it is alive.
_REPORT_PERIOD_SECONDS = 1.0

# How long it waits for a last batch when none is due any more.
_LAST_SECONDS = 1.0

_SEED_SIZE = 2**31


class BellmanUpdaterNode(node.Node):
  """Takes items from replay, and writes what is to be learned of them.

  It is between two rate limits: it waits until replay has a batch to give, and
  until the train buffer takes the targets.
  """

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    updater: programs.BellmanUpdater,
    *,
    followed: variables.FollowedVariables,
    road: roads.Road,
    index: int = 0,
    max_pending_items: int | None = None,
  ):
    """Compiles it.

    Args:
      updater: Computes the targets.
      followed: Keeps its variables fresh.
      road: Brings items, and takes finished ones; its stop signal ends every
        wait.
      index: Which of several it is, for its random numbers.
      max_pending_items: Items that may be on their way to the train buffer
        while it computes others; None for those of a batch.
    """
    self.name = context.name
    self._coordinator = context.coordinator
    self._stop = context.stop
    self._followed = followed
    mixed = offline.make_demonstrations(
      session, context.stop, context.tell_start
    )
    if mixed is not None:
      data_changes.tell(context, session, session.experiment.demonstrations)
    self._end = road.make_learner_end()
    if mixed is not None:
      self._end.mix_in(mixed)
    self._num_rows = session.experience.rows
    if max_pending_items is None:
      max_pending_items = self._num_rows
    self._writer = road.learned.make_writer(max_pending_items=max_pending_items)
    self._writer.open(self._num_rows)
    context.tell_start('compiling its targets')

    def compute(sample, seed):
      with programs.no_late_variables(f'a call of {type(updater).__name__}'):
        return updater(sample, seed)

    self._compute = compilation.CompiledFunction(
      compute,
      (self._end.batches.element_spec, tf.TensorSpec([2], tf.int32)),
      session.jit_compile,
    )
    # Numbers follow from how many batches replay has given, so that they are
    # others after a restart, and what they would have been after a stop.
    experience = session.experience
    drawn = self._end.statuses()[experience.table.name].samples
    self._first_batch = drawn // experience.batch_size
    self._seed = session.make_lasting_seed(session_lib.TARGETS, index)
    self._num_batches = 0
    self._has_begun = self._is_ending = False
    self._rates = rates.Rates()
    self._reported_at = 0.0

  @property
  def description(self):
    return {'targets_at_a_time': self._num_rows}

  @property
  def num_items(self) -> int:
    """Targets that it has computed."""
    return self._writer.num_items

  def flush(self) -> None:
    """Waits until the train buffer has taken all."""
    self._writer.flush()

  def run(self) -> None:
    """Computes targets until the actors are done and no batch is due."""
    self._followed.update(wait=True)
    self._end.wait_for_items()
    self._has_begun = True
    while self.step() or not self._is_ending:
      pass
    self.flush()  # The learner counts on all of them when these are done.

  def catch_up(
    self, num_items: int, flush: Callable[[], None], learn: Callable[[], None]
  ) -> None:
    """Computes targets until no batch is due, where all take turns.

    Args:
      num_items: That actors have added since this node was made.
      flush: Waits until replay has taken them all, before it is sampled.
      learn: Lets the learner catch up, after each batch: so targets are as
        fresh as they can be, and the train buffer has room.
    """
    self._end.expect_batches()
    while self._end.updates_due(self._num_batches, num_items):
      flush()
      self.step()
      learn()

  def step(self) -> bool:
    """Computes the targets of a batch, as soon as the rate limiter gives it.

    Returns:
      Whether there was one: not if batches are expected and none came.
    """
    try:
      sample = next(self._end.batches)
    except datasets.Starved:
      if not self._is_ending:
        lost_items.tell(
          self.name, self._coordinator, self._end, self._num_batches
        )
      return False
    self._followed.update()
    number = (self._first_batch + self._num_batches) % _SEED_SIZE
    seed = np.array([self._seed, number], np.int32)
    leaves = self._compute(*tree.flatten(sample), seed)
    version = np.full([self._num_rows], self._followed.version, np.int64)
    self._num_batches += 1
    self._writer.put([*(leaf.numpy() for leaf in leaves), version])
    if self._writer.is_ahead():
      self._writer.wait()
    return True

  def report(self) -> reports.Directive:
    """Tells the coordinator how fast it is, and heeds what is to be done."""
    now = time.monotonic()
    if now - self._reported_at < _REPORT_PERIOD_SECONDS:
      directive = self._coordinator.poll(self.name)
    else:
      self._reported_at = now
      (rate,) = self._rates.measure(self.num_items)
      row = {
        'targets': self.num_items,
        'targets_per_second': rate,
        'version': self._followed.version,
        'age_seconds': self._followed.age_seconds or 0.0,
      }
      directive = self._coordinator.report_targets(self.name, row)
    self._heed(directive)
    return directive

  def close(self) -> None:
    """Hands over what is complete and ends all threads."""
    with contextlib.ExitStack() as stack:  # Whichever of them fails.
      stack.callback(self._followed.close)
      stack.callback(self._end.close)
      stack.callback(self._writer.close)

  def _heed(self, directive: reports.Directive) -> None:
    """Sees to it that it waits as long as something may come."""
    if directive.is_acting_delayed:
      self._end.excuse()
    if directive.phase != reports.LABELING or self._end.is_batch_due():
      return
    if self._has_begun:
      # What was drawn ahead is still taken, and comes at once.
      self._end.expect_batches(_LAST_SECONDS)
      self._is_ending = True
    else:
      self._stop.set()  # It will never have enough to begin.


def make_beside(
  context: node.Context,
  session: session_lib.Session,
  learned: variables.Versioned,
  exports: Mapping[str, Sequence[tf.Variable]],
  road: roads.Road,
  max_pending_items: int,
) -> BellmanUpdaterNode:
  """Makes one in the thread of the learner, with variables as new as its own.

  Args:
    learned: The learner.
    exports: Variables of its update, by name.
    road: Whose learner end that one has.
    max_pending_items: See `BellmanUpdaterNode`.
  """
  updater = session.experiment.builder.make_bellman_updater(session.spec)
  followed = variables.CopiedVariables(
    learned,
    [v for name in updater.followed for v in exports[name]],
    [v for group in updater.followed.values() for v in group],
  )
  return BellmanUpdaterNode(
    context,
    session,
    updater,
    followed=followed,
    road=road,
    max_pending_items=max_pending_items,
  )
