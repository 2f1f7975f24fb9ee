"""Learner node of offline runs."""

from collections.abc import Sequence

from repertory.launch.coordination import reports
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import learner, learning, node, offline


class OfflineLearnerNode(learner.LearnerNode):
  """Learns from a table of data; learner steps count as the run's steps."""

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    paths: Sequence[str],
  ):
    """Reads the data sets, and restores the learner of a resumed session."""
    context.report_start('reading its data')
    transport = offline.make_transport(
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
