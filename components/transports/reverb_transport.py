"""Transport through a replay server."""

from collections.abc import Callable, Mapping
from concurrent import futures

from repertory.components import replay
from repertory.components.runtime import signals, worker_thread
from repertory.components.transports import experience as experience_lib
from repertory.components.transports import transport

# Interval of checks whether Reverb has fixed the items of a checkpoint.
_POLL_SECONDS = 0.002


class ReverbTransport(transport.Transport):
  """Transport through a replay server.

  Each process with an actor or a learner has its own instance, connected to the
  same server.
  """

  kind = transport.REVERB

  def __init__(
    self,
    connection: 'replay.Connection',
    experience: experience_lib.Experience,
    adder_factory: transport.AdderFactory,
    checkpoint_directory: str = '',
  ):
    """Takes a connection to a server with the experience's tables.

    The connection's timeout and stop signal end every wait. The server has its
    checkpoints in the directory.
    """
    super().__init__(
      experience, adder_factory, connection, checkpoint_directory
    )
    self._connection = connection

  def make_writer(self, **settings) -> replay.Writer:
    return replay.ReverbWriter(
      self._connection, self.experience.table, **settings
    )

  def make_batches(self) -> replay.Batches:
    return replay.ReplayDataset(
      self._connection,
      self.experience.table,
      self.experience.batch_size,
      prefetch=self.experience.prefetch,
    )

  def make_priorities(self, floor: float) -> replay.Priorities:
    name = self.experience.table.name
    return replay.PriorityUpdater(self._connection, name, floor)

  def statuses(self) -> Mapping[str, replay.TableInfo]:
    tables = [self.experience.table]
    return replay.table_status(self._connection.client, tables)

  def take_snapshot(
    self, actors: transport.ActorState | None
  ) -> Callable[[], str]:
    """As the base class. Reverb fixes the items after it has begun to write."""
    del actors  # They are in other processes.
    thread = worker_thread.WorkerThread('replay_checkpoint')
    writing = thread.submit(lambda: replay.write_checkpoint(self._connection))
    thread.close(0.0)  # It ends after the call.

    def is_taken(seconds: float) -> bool:
      is_done = futures.wait([writing], min(seconds, _POLL_SECONDS)).done
      return bool(is_done) or replay.is_snapshot_taken(
        self._checkpoint_directory
      )

    signals.wait_for(
      is_taken,
      lambda: f'the snapshot of {self._connection}',
      self._connection.timeout_seconds,
      signals.StopSignal(),  # The last checkpoint comes after a stop.
    )
    return writing.result
