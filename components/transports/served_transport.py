"""Transport through a replay server of this package."""

from collections.abc import Callable, Mapping

from repertory.components import replay
from repertory.components.replay import served
from repertory.components.transports import experience as experience_lib
from repertory.components.transports import transport


class ServedTransport(transport.Transport):
  """Transport through a replay server of this package, without bundles.

  Each process with an actor or a learner has its own instance, connected to the
  same server.
  """

  kind = transport.SERVED

  def __init__(
    self,
    connection: 'served.ServerConnection',
    experience: experience_lib.Experience,
    adder_factory: transport.AdderFactory,
    checkpoint_directory: str = '',
  ):
    """Takes a connection to a server with the experience's tables.

    The connection's timeout and stop signal end every wait. The server has its
    snapshots in the directory.
    """
    super().__init__(
      experience, adder_factory, connection, checkpoint_directory
    )
    self._connection = connection

  def make_writer(self, **settings) -> replay.Writer:
    return served.ServedWriter(
      self._connection, self.experience.table, **settings
    )

  def make_batches(self) -> replay.Batches:
    return served.ServedBatches(
      self._connection,
      self.experience.table,
      self.experience.batch_size,
      prefetch=self.experience.prefetch,
    )

  def make_priorities(self, floor: float) -> replay.Priorities:
    return served.ServedPriorities(
      self._connection, self.experience.table, floor
    )

  def statuses(self) -> Mapping[str, replay.TableInfo]:
    return self._connection.statuses()

  def take_snapshot(
    self, actors: transport.ActorState | None
  ) -> Callable[[], str]:
    del actors  # They are in other processes.
    return self._connection.take_snapshot()
