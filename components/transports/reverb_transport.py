"""Transport through a replay server."""

import copy
from collections.abc import Callable, Mapping
from concurrent import futures

from repertory.components import replay
from repertory.components.runtime import signals, worker_thread
from repertory.components.transports import experience as experience_lib
from repertory.components.transports import learner_side, transport

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
    self._connection = connection
    self._experience = experience
    self._adder_factory = adder_factory
    self._checkpoint_directory = checkpoint_directory

  @property
  def learned(self) -> 'ReverbTransport':
    later = copy.copy(self)
    later._experience = self._experience.learned
    return later

  def make_writer(self, **settings) -> replay.Writer:
    return replay.ReverbWriter(
      self._connection, self._experience.table, **settings
    )

  def make_learner_side(self) -> learner_side.LearnerSide:
    return _ReverbLearnerSide(self)


class _ReverbLearnerSide(learner_side.LearnerSide):
  """Learner side for a replay server."""

  kind = ReverbTransport.kind

  def __init__(self, transport: ReverbTransport):
    self._connection = connection = transport._connection
    self._checkpoint_directory = transport._checkpoint_directory
    experience, table = transport._experience, transport._experience.table
    super().__init__(experience, connection)
    self.batches = replay.ReplayDataset(
      connection, table, experience.batch_size, prefetch=experience.prefetch
    )
    self.priorities = None
    if experience.min_priority is not None:
      self.priorities = replay.PriorityUpdater(
        connection, table.name, experience.min_priority
      )

  def statuses(self) -> Mapping[str, replay.TableInfo]:
    tables = [self._experience.table]
    return replay.table_status(self._connection.client, tables)

  def take_snapshot(self) -> Callable[[], str]:
    """As the base class. Reverb fixes the items after it has begun to write."""
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

  def remove_snapshots(self) -> None:
    replay.remove_checkpoints(self._checkpoint_directory)
