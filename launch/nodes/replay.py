"""Replay server node."""

from repertory.components import replay, transports
from repertory.components.replay import served
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import node


class ReplayNode(node.Node):
  """Serves the replay tables, restored from the checkpoint if there is one.

  Attributes:
    address: Address of the server.
  """

  def __init__(self, context: node.Context, session: session_lib.Session):
    """Starts the server."""
    super().__init__(context)
    resumes = ', restoring a checkpoint' if session.is_resumed else ''
    context.report_start(f'starting its server{resumes}')
    directory, interface = session.replay_directory, context.interface
    if session.transport == transports.REVERB:
      self._server = replay.make_server(session.tables, directory, interface)
      self.address = interface.address(self._server.port)
    else:
      self._server = served.ReplayServer(
        session.tables,
        session.make_seed(session_lib.SAMPLING),
        checkpoint_directory=directory,
        interface=interface,
        token=context.token,
      )
      self.address = self._server.address
    context.closing.callback(self._server.stop)
    # All is restored; links would keep the files of removed checkpoints.
    replay.remove_checkpoints(session.replay_directory)

  @property
  def description(self):
    return {'address': self.address}
