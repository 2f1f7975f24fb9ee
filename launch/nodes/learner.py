"""Learner nodes, online and offline."""

import contextlib
import time
from collections.abc import Callable, Sequence

from repertory.components import replay, transports
from repertory.components.runtime import signals
from repertory.components.transports import transport as transport_lib
from repertory.launch import nodes
from repertory.launch.coordination import reports
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import learning, node

# Timeout of a stopped learner for the last reports of actors.
_LAST_REPORT_SECONDS = 1.5


class LearnerNode(learning.LearningNode):
  """Learns at the replay ratio, and writes checkpoints.

  Attributes:
    exports: Variables of the update, by name.
  """

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    transport: transports.Transport,
  ):
    """Makes the learner, and restores it if the session is resumed."""
    super().__init__(context, session)
    self._phase, self._phase_since = reports.ACTING, time.monotonic()
    builder = session.experiment.builder
    mixed, paths = None, session.experiment.demonstrations
    # If there are Bellman updaters, they mix them in.
    if paths and session.experience.with_targets is None:
      mixed = nodes.offline.make_demonstrations(
        session, context.stop, context.report_start
      )
    self._end = transport.make_learner_side()
    context.closing.callback(self._end.close)
    if mixed is not None:
      self._end.mix_in(mixed)
    context.report_start('compiling its update')
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
    if mixed is not None and not mixed.is_resumed:
      learning.report_data_change(context, session, paths)
    self._end.begin(learner.steps)

  def run(self) -> None:
    with contextlib.suppress(signals.Stopped):
      self._learn()
    self._wait_for_actors(_LAST_REPORT_SECONDS)
    if not self.is_untouched():
      self.checkpoint()
    self._logger.flush()

  def _learn(self) -> None:
    """Learns until actors are done and no batch is due, or until stopped."""
    self._end.wait_for_items()
    while not self._stop.is_set():
      if self._phase == reports.LEARNING and self.is_caught_up():
        return
      self.step()
      self._publish()
      self.checkpoint_if_due()

  def catch_up(self, num_items: int, flush: Callable[[], None]) -> None:
    """Learns until no batch is due, in a single-threaded run.

    It calls `flush` before it samples, so that samples are reproducible.
    """
    self._end.expect_batches()
    while self._end.updates_due(self.version, num_items):
      flush()
      self.step()

  def is_caught_up(self) -> bool:
    """Returns whether no batch is due by the replay ratio."""
    return not self._end.updates_due(self.version)

  def step(self) -> None:
    """Learns from the next batch, once the rate limiter allows it.

    If batches are expected and one was lost, it does nothing.
    """
    try:
      self.learner.step()
    except replay.BatchTimeout:
      learning.report_lost_items(
        self.name, self._coordinator, self._end, self.version
      )

  def report(self) -> reports.HeartbeatReply:
    """Reports to the coordinator, and handles the reply."""
    reply = self._report_tables(self._end.statuses())
    self._handle(reply)
    return reply

  def _handle(self, reply: reports.HeartbeatReply) -> None:
    """Adjusts waits: resets the timeout, expects batches, or stops."""
    if reply.is_acting_delayed:
      self._end.reset_timeout()
    if reply.phase != self._phase:
      self._phase, self._phase_since = reply.phase, time.monotonic()
    if self._phase != reports.LEARNING:
      return
    # With all actors done and no batch due, it would wait for ever.
    if self.is_caught_up():
      self._stop.set()
    # The same holds for lost items, once pending ones had time to arrive.
    elif (
      time.monotonic() - self._phase_since > transport_lib.BATCH_TIMEOUT_SECONDS
    ):
      self._end.expect_batches()


class OfflineLearnerNode(LearnerNode):
  """Learns from a table of data; learner steps count as the run's steps."""

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    paths: Sequence[str],
  ):
    """Reads the data sets, and restores the learner of a resumed session."""
    context.report_start('reading its data')
    transport = nodes.offline.make_transport(
      session,
      session.experience,
      paths,
      context.stop,
      context.report_start,
      checkpoint_directory=session.replay_directory,
    )
    if not transport.is_resumed:
      learning.report_data_change(context, session, paths)
    super().__init__(context, session, transport)
    self._reported = self.version

  def report(self) -> reports.HeartbeatReply:
    new, self._reported = self.version - self._reported, self.version
    self._coordinator.report_actor(
      self.name,
      reports.ActorReport(
        steps=new,
        total_steps=self.version - self.begins_at_step,
        episodes=[],
      ),
    )
    return super().report()
