"""The learner."""

import contextlib
import time
from collections.abc import Callable

from repertory.components import datasets, roads, signals
from repertory.components.roads import learner_end
from repertory.launch.coordination import reports
from repertory.launch.nodes import data_changes, learning, lost_items, node
from repertory.launch.runs import offline
from repertory.launch.runs import session as session_lib

# How long a learner that was stopped waits for the actors' last reports.
LAST_REPORT_SECONDS = 1.5


class LearnerNode(learning.LearningNode):
  """Learns, keeps the ratio to acting, and writes checkpoints.

  Attributes:
    exports: Variables of the update, by name.
  """

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    road: roads.Road,
  ):
    """Makes the learner, and restores it if the session is resumed.

    Args:
      road: Brings what is learned from, see `Road.learned`; its stop signal
        ends every wait.
    """
    super().__init__(context, session)
    self._phase, self._phase_since = reports.ACTING, time.monotonic()
    builder = session.experiment.builder
    mixed = None
    if session.experience.labeled is None:  # Else others see to that.
      mixed = offline.make_demonstrations(
        session, context.stop, context.tell_start
      )
    self._end = road.make_learner_end()
    with contextlib.ExitStack() as unless_made:
      unless_made.callback(self._end.close)
      if mixed is not None:
        self._end.mix_in(mixed)
      context.tell_start('compiling its update')
      self.exports = self._update.exports
      learner = builder.make_learner(
        self._update,
        self._end.batches,
        self._end.priorities,
        self._logger,
        session.divergence,
        session.jit_compile,
      )
      self._begin_with(learner, self._end)
      if mixed is not None and not mixed.goes_on:
        data_changes.tell(context, session, session.experiment.demonstrations)
      self._end.begin(learner.steps)
      unless_made.pop_all()

  def run(self) -> None:
    with contextlib.suppress(signals.Stopped):
      self._learn()
    self._wait_for_actors()
    if not self._is_untouched():
      self.checkpoint()
    self._logger.flush()

  def _learn(self) -> None:
    """Learns until the actors are done and no batch is due, or stopped."""
    self._end.wait_for_items()
    while not self._stop.is_set():
      if self._phase == reports.LEARNING and self.is_caught_up():
        return
      self.step()
      self.checkpoint_if_due()

  def _wait_for_actors(self) -> None:
    """Gives actors that were stopped a moment to report their last steps."""
    deadline = time.monotonic() + LAST_REPORT_SECONDS
    while time.monotonic() < deadline:
      if self._coordinator.have_actors_finished():
        return
      time.sleep(reports.PERIOD_SECONDS / 5)

  def catch_up(self, num_items: int, flush: Callable[[], None]) -> None:
    """Learns until no batch is due, where the learner and one actor take turns.

    Args:
      num_items: That have been added since this node was made.
      flush: Waits until the table has taken them all, before the learner
        samples: else it would depend on chance from which items is sampled.
    """
    self._end.expect_batches()
    while self._end.updates_due(self.version, num_items):
      flush()
      self.step()

  def is_caught_up(self) -> bool:
    """Asks the table whether learning has kept the ratio to acting."""
    return not self._end.updates_due(self.version)

  def step(self) -> None:
    """Learns from the next batch, as soon as the rate limiter gives it.

    Or takes none, if batches are expected and one was lost.
    """
    try:
      self.learner.step()
    except datasets.Starved:
      lost_items.tell(self.name, self._coordinator, self._end, self.version)
      return
    self._publish()

  def report(self) -> reports.Directive:
    """Tells the coordinator how far it is, and heeds what is to be done."""
    directive = self._report_tables(self._end.statuses())
    self._heed(directive)
    return directive

  def _heed(self, directive: reports.Directive) -> None:
    """Sees to it that the learner waits as long as something may come."""
    if directive.is_acting_delayed:
      self._end.excuse()
    if directive.phase != self._phase:
      self._phase, self._phase_since = directive.phase, time.monotonic()
    if self._phase == reports.STOPPING and self._is_done_with_all():
      self._stop.set()  # Of one that finishes what the actors have begun.
    if self._phase != reports.LEARNING:
      return
    # With all actors done, a learner that has caught up would wait for ever.
    if self.is_caught_up():
      self._stop.set()
    # And so would one for what was lost, though not before all had time to come
    # that the actors left.
    elif time.monotonic() - self._phase_since > learner_end.PATIENCE_SECONDS:
      self._end.expect_batches()

  def _is_untouched(self) -> bool:
    """Whether this run took no step, so all is as it was before."""
    if self.version > self._begins_at_step:
      return False
    steps = self._coordinator.directive().steps
    return steps == self._session.counts['steps']

  def _is_done_with_all(self) -> bool:
    return self._coordinator.have_actors_finished() and self.is_caught_up()

  def close(self) -> None:
    """Writes what the log still holds back and ends all threads."""
    with contextlib.ExitStack() as stack:  # Whichever of them fails.
      stack.callback(self._end.close)
      stack.callback(super().close)
