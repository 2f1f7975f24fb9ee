"""Replay server node."""

from repertory.components import replay
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import node


class ReplayNode(node.Node):
  """Serves the replay tables, restored from the checkpoint if there is one."""

  def __init__(self, context: node.Context, session: session_lib.Session):
    """Starts the server."""
    super().__init__(context)
    self._interface = context.interface
    resumes = ', restoring a checkpoint' if session.is_resumed else ''
    context.report_start(f'starting its server{resumes}')
    self._server = replay.make_server(
      session.tables,
      checkpoint_directory=session.replay_directory,
      interface=context.interface,
    )
    # All is restored; links would keep the files of removed checkpoints.
    replay.remove_checkpoints(session.replay_directory)

  @property
  def address(self) -> str:
    """Address of the server, 'host:port'."""
    return self._interface.address(self._server.port)

  @property
  def description(self):
    return {'address': self.address}

  def close(self) -> None:
    self._server.stop()
