"""Learner of an offline run."""

from repertory.components import transports
from repertory.launch.coordination import reports
from repertory.launch.nodes import learner, node
from repertory.launch.opening import session as session_lib


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
        total_steps=self.version - self._begins_at_step,
        episodes=[],
      ),
    )
    return super().report()
