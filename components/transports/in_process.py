"""Transport within one process."""

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from repertory.components import replay
from repertory.components.replay import local
from repertory.components.transports import experience as experience_lib
from repertory.components.transports import learner_side, transport


@dataclasses.dataclass
class ActorStates:
  """State of the actors in snapshots of the table.

  Attributes:
    restored: State from the initial snapshot; empty without one.
    source: Source of the state for new snapshots; None for no state.
  """

  restored: bytes = b''
  source: learner_side.ActorSnapshots | None = None


class InProcessTransport(transport.Transport):
  """Transport through a local replay table, without bundles.

  Actors and learner are in one process, in any number of threads. Batches are
  sampled on request, whatever `Experience.prefetch` is.

  In one thread everything follows from the seed. With several acting threads,
  batches depend on their speeds, unless the table is a queue in round-robin
  order: then the k-th blocks of items of all writers follow on one another, and
  a writer that is early waits.

  Attributes:
    actors: State of the actors in snapshots.
  """

  kind = 'local'

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
    """Creates the tables, and restores them from a snapshot if there is one.

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
    self._experience = experience
    self._adder_factory = adder_factory
    self._place = place or local.WaitPolicy()
    self._checkpoint_directory = checkpoint_directory
    self._turn: int | None = None
    # The table that actors write to is first, the one of targets second.
    self._tables = [local.Table(experience.table, seed, num_turns)]
    if experience.with_targets is not None:
      self._tables.append(local.Table(experience.with_targets.table, seed + 1))
    self._table = self._tables[0]
    self.actors = ActorStates()
    if not checkpoint_directory:
      return
    for i, table in enumerate(self._tables):
      part = table.description.name if i else ''
      contents = local.read(checkpoint_directory, table.description, part)
      if contents is not None:
        with local.reading(f'{checkpoint_directory} of a checkpoint'):
          table.restore(contents)
        self.actors.restored = self.actors.restored or contents.actors
    replay.remove_checkpoints(checkpoint_directory)

  def at(
    self, place: local.WaitPolicy, turn: int | None = None
  ) -> 'InProcessTransport':
    """Returns this transport for an actor with its own waits and its turn."""
    one = copy.copy(self)
    one._place, one._turn = place, turn
    return one

  @property
  def learned(self) -> 'InProcessTransport':
    later = copy.copy(self)
    later._experience = self._experience.learned
    later._table = self._tables[-1]
    return later

  def make_writer(self, **settings) -> replay.Writer:
    return local.LocalWriter(
      self._table, self._place, turn=self._turn, **settings
    )

  def make_learner_side(self) -> learner_side.LearnerSide:
    return InProcessLearnerSide(self)


class InProcessLearnerSide(learner_side.LearnerSide):
  """Learner side of a table of an in-process transport."""

  kind = InProcessTransport.kind

  def __init__(self, transport: InProcessTransport):
    self._local_tables = transport._tables
    self._local_table = table = transport._table
    self._actors = transport.actors
    self._actor_state: learner_side.ActorState | None = None
    self._checkpoint_directory = transport._checkpoint_directory
    experience, place = transport._experience, transport._place
    super().__init__(experience, place)
    self.batches = local.LocalBatches(table, experience.batch_size, place)
    self.priorities = None
    if experience.min_priority is not None:
      self.priorities = local.LocalPriorities(table, experience.min_priority)

  def statuses(self) -> Mapping[str, replay.TableInfo]:
    return {
      table.description.name: table.status() for table in self._local_tables
    }

  def prepare(self) -> bool:
    source = self._actors.source
    samples = self._local_tables[0].status().samples
    return source is None or source.prepare(samples)

  def flush(self) -> None:
    super().flush()
    source = self._actors.source
    self._actor_state = None if source is None else source.take()

  def counts(self) -> Mapping[str, int]:
    return self._actor_state.counts if self._actor_state else {}

  def describe(self) -> dict[str, Any]:
    """As the base class; `is_exact` if a run would resume exactly."""
    described, state = super().describe(), self._actor_state
    described['is_exact'] = state is not None
    if state is not None and state.num_inserts is not None:
      name = self._local_tables[0].description.name
      described['tables'][name]['inserts'] = state.num_inserts
    return described

  def take_snapshot(self) -> Callable[[], str]:
    directory = self._checkpoint_directory
    if not directory:
      raise ValueError('checkpoint_directory must be given to write snapshots.')
    copies = [(one.description, one.copy()) for one in self._local_tables]
    state = self._actor_state
    if state is not None:
      table, contents = copies[0]
      if state.num_inserts is not None:
        contents = contents.until(state.num_inserts)
      copies[0] = table, dataclasses.replace(contents, actors=state.saved)
    return lambda: local.write(directory, *copies)

  def remove_snapshots(self) -> None:
    replay.remove_checkpoints(self._checkpoint_directory)
