"""Transports through replay servers: Reverb's, and that of this package."""

from collections.abc import Callable, Mapping
from concurrent import futures

from repertory.components import replay
from repertory.components.replay import served
from repertory.components.runtime import signals, worker_thread
from repertory.components.transports import transport

# Interval of checks whether Reverb has fixed the items of a checkpoint.
_POLL_SECONDS = 0.002


class ReverbTransport(transport.Transport):
  """Transport through a Reverb server.

  Each process with an actor or a learner has its own instance, connected to the
  same server.
  """

  kind = transport.REVERB
  place: 'replay.Connection'

  def make_writer(self, **settings) -> replay.Writer:
    return replay.ReverbWriter(self.place, self.experience.table, **settings)

  def make_batches(self) -> replay.Batches:
    return replay.ReplayDataset(
      self.place,
      self.experience.table,
      self.experience.batch_size,
      prefetch=self.experience.prefetch,
    )

  def make_priorities(self, floor: float) -> replay.Priorities:
    name = self.experience.table.name
    return replay.PriorityUpdater(self.place, name, floor)

  def statuses(self) -> Mapping[str, replay.TableInfo]:
    tables = [self.experience.table]
    return replay.table_status(self.place.client, tables)

  def take_snapshot(
    self, actors: transport.ActorState | None
  ) -> Callable[[], str]:
    """As the base class. Reverb fixes the items after it has begun to write."""
    del actors  # They are in other processes.
    writing = worker_thread.run_apart(
      'replay_checkpoint', lambda: replay.write_checkpoint(self.place)
    )

    def is_taken(seconds: float) -> bool:
      is_done = futures.wait([writing], min(seconds, _POLL_SECONDS)).done
      return bool(is_done) or replay.is_snapshot_taken(
        self._checkpoint_directory
      )

    signals.wait_for(
      is_taken,
      lambda: f'the snapshot of {self.place}',
      self.place.timeout_seconds,
      signals.StopSignal(),  # The last checkpoint comes after a stop.
    )
    return writing.result


class ServedTransport(transport.Transport):
  """Transport through a replay server of this package, without bundles.

  Processes use it as `ReverbTransport`.
  """

  kind = transport.SERVED
  place: 'served.ServerConnection'

  def make_writer(self, **settings) -> replay.Writer:
    return served.ServedWriter(self.place, self.experience.table, **settings)

  def make_batches(self) -> replay.Batches:
    return served.ServedBatches(
      self.place,
      self.experience.table,
      self.experience.batch_size,
      prefetch=self.experience.prefetch,
    )

  def make_priorities(self, floor: float) -> replay.Priorities:
    return served.ServedPriorities(self.place, self.experience.table, floor)

  def statuses(self) -> Mapping[str, replay.TableInfo]:
    return self.place.statuses()

  def take_snapshot(self, actors):
    del actors  # They are in other processes.
    return self.place.take_snapshot()
