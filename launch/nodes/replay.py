"""The replay server."""

from collections.abc import Sequence

from repertory.components import interfaces, replay
from repertory.launch.coordination import addresses, kinds, reports
from repertory.launch.nodes import node
from repertory.launch.runs import session as session_lib


class ReplayNode(node.Node):
  """Holds the replay tables, filled from the checkpoint if there is one."""

  def __init__(self, context: node.Context, session: session_lib.Session):
    """Starts the server."""
    self.name = context.name
    self._coordinator = context.coordinator
    self._stop = context.stop
    self._interface = context.interface
    resumes = ', with what a checkpoint has' if session.is_resumed else ''
    context.tell_start(f'starting its server{resumes}')
    self._server = replay.make_server(
      session.tables,
      checkpoint_directory=session.replay_directory,
      interface=context.interface,
    )
    # It has read all; links would keep the room of checkpoints that are
    # removed.
    replay.remove_checkpoints(session.replay_directory)

  @property
  def address(self) -> str:
    """Where the server listens, 'host:port'."""
    return self._interface.address(self._server.port)

  @property
  def served(self):
    return {'shut_out': self.shut_out}

  def shut_out(self, hosts: Sequence[str]) -> None:
    """Hears nothing more from some hosts, until it is called without them.

    Args:
      hosts: IP addresses of those that were lost, which may still live.
    """
    interfaces.restrict(self._server.port, self._interface, hosts)

  @property
  def description(self):
    return {'address': self.address}

  def run(self) -> None:
    while not self._stop.wait(reports.PERIOD_SECONDS):
      pass

  def report(self) -> reports.Directive:
    return self._coordinator.poll(self.name)

  def close(self) -> None:
    self._server.stop()


def connect(
  context: node.Context, session: session_lib.Session
) -> replay.Connection:
  """Returns a connection to the replay server, once it listens.

  Args:
    context: The connecting node's; its stop signal ends every wait.
  """
  timeout_seconds = session.experiment.timeout_seconds
  context.tell_start(f'waiting for {kinds.REPLAY.name}')
  address = addresses.find(
    context.coordinator,
    kinds.REPLAY.name,
    asks=context.name,
    timeout_seconds=timeout_seconds,
    stop=context.stop,
  )
  return replay.Connection(
    address,
    timeout_seconds,
    context.stop,
    warning_seconds=None,  # The display shows who waits, and a report stalls.
  )
