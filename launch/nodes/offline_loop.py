"""Single-threaded offline run with evaluations between learner steps."""

from collections.abc import Callable, Sequence

from repertory.components import loggers, transports
from repertory.launch.coordination import kinds, reports
from repertory.launch.nodes import (
  learner,
  learning,
  node,
  run_loop,
)
from repertory.launch.opening import offline, offline_checks
from repertory.launch.opening import session as session_lib
from repertory.launch.platform import interrupts


class OfflineLearnerNode(learner.LearnerNode):
  """Learns from a table of data; learner steps count as the run's steps."""

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    transport: transports.OfflineTransport,
  ):
    """Makes the learner, and restores it if the session is resumed."""
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


class OfflineLoop(run_loop.RunLoop):
  """Reads the data sets, then runs one learner step per iteration."""

  def __init__(
    self,
    session: session_lib.Session,
    title: str,
    interruption: interrupts.Interruption,
    show: Callable[[loggers.Status], None],
    paths: Sequence[str],
  ):
    """Makes only the coordinator; see `run_loop.RunLoop`."""
    super().__init__(session, title, interruption, show)
    self._paths = paths

  def _make_learner(self):
    self._data_learner = self._add(kinds.LEARNER.name, self._make_data_learner)
    return self._data_learner

  def _make_data_learner(self, context: node.Context) -> OfflineLearnerNode:
    session = self._session
    context.report_start('reading its data')
    data = offline_checks.open_all(self._paths)
    transport = offline.make_transport(
      session,
      session.experience,
      data,
      self._interruption,
      checkpoint_directory=session.replay_directory,
    )
    offline.fill(transport, session, data, context.report_start)
    if not transport.is_resumed:
      learning.report_data_change(context, session, self._paths)
    return OfflineLearnerNode(context, session, transport)

  def _iterate(self):
    with self._named(self._data_learner.name):
      self._data_learner.step()
    return 1
