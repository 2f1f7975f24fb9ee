"""Transport within one process."""

import copy
import dataclasses
from collections.abc import Mapping

from repertory.components import replay
from repertory.components.replay import local
from repertory.components.transports import experience as experience_lib
from repertory.components.transports import transport


class InProcessTransport(transport.Transport):
  """Transport through a local replay table, without bundles.

  Actors and learner are in one process, in any number of threads. Batches are
  sampled on request, whatever `Experience.prefetch` is.

  In one thread everything follows from the seed. With several acting threads,
  batches depend on their speeds, unless the table is a queue in round-robin
  order: then the k-th blocks of items of all writers follow on one another, and
  a writer that is early waits.
  """

  kind = transport.IN_PROCESS

  def __init__(
    self,
    experience: experience_lib.Experience,
    adder_factory: transport.AdderFactory,
    *,
    seed: int,
    place: local.WaitPolicy | None = None,
    checkpoint_directory: str = '',
    num_turns: int | None = None,
  ):
    """Creates the table, and restores it from a snapshot if there is one.

    Args:
      experience: Description of the agent's experience.
      adder_factory: Factory of adders, such as `Builder.make_adder`.
      seed: Seed of the samplers, unless a snapshot has their state.
      place: Its timeout and stop signal end every wait.
      checkpoint_directory: Directory for snapshots. An existing one is read
        now, and then removed: hard links would keep the disk space of removed
        checkpoints.
      num_turns: Number of adders in round-robin order, each created by a
        transport of `at`; None for no order.

    Raises:
      ValueError: If leaves of the items are not numeric, of known shape.
      CheckpointError: If the snapshot cannot be read, or is of another table.
    """
    place = place or local.WaitPolicy()
    super().__init__(experience, adder_factory, place, checkpoint_directory)
    self._turn: int | None = None
    self.table = local.Table(experience.table, seed, num_turns)
    if not checkpoint_directory:
      return
    contents = local.read(checkpoint_directory, experience.table)
    if contents is not None:
      with local.reading(f'{checkpoint_directory} of a checkpoint'):
        self.table.restore(contents)
      self.actors.restored = contents.actors
    replay.remove_checkpoints(checkpoint_directory)

  def at(
    self, place: local.WaitPolicy, turn: int | None = None
  ) -> 'InProcessTransport':
    """Returns this transport for an actor with its own waits and its turn."""
    one = copy.copy(self)
    one.place, one._turn = place, turn
    return one

  def make_writer(self, **settings) -> replay.Writer:
    return local.LocalWriter(
      self.table, self.place, turn=self._turn, **settings
    )

  def make_batches(self) -> replay.Batches:
    batch_size = self.experience.batch_size
    return local.LocalBatches(self.table, batch_size, self.place)

  def make_priorities(self, floor: float) -> replay.Priorities:
    return local.LocalPriorities(self.table, floor)

  def statuses(self) -> Mapping[str, replay.TableInfo]:
    return {self.table.description.name: self.table.status()}

  def take_snapshot(self, actors):
    directory = self._checkpoint_directory
    if not directory:
      raise ValueError('checkpoint_directory must be given to write snapshots.')
    table, contents = self.table.description, self.table.copy()
    if actors is not None:
      contents = dataclasses.replace(contents, actors=actors.saved)
    return lambda: local.write(directory, [(table, contents)])
