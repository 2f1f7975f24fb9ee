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
    take: Returns the state for a new snapshot, between two updates of the
      learner; None if the actors are not at the same step.
  """

  restored: bytes = b''
  take: Callable[[], learner_side.ActorState | None] = lambda: None


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
      ValueError: If the experience needs a replay server.
      CheckpointError: If the snapshot cannot be read, or is of another table.
    """
    check_in_process(experience)
    self._experience = experience
    self._adder_factory = adder_factory
    self._place = place or local.WaitPolicy()
    self._checkpoint_directory = checkpoint_directory
    self._turn: int | None = None
    self._table = local.Table(experience.table, seed, num_turns)
    self.actors = ActorStates()
    if not checkpoint_directory:
      return
    contents = local.read(checkpoint_directory, experience.table)
    if contents is not None:
      with local.reading(f'{checkpoint_directory} of a checkpoint'):
        self._table.restore(contents)
      self.actors.restored = contents.actors
    replay.remove_checkpoints(checkpoint_directory)

  def at(
    self, place: local.WaitPolicy, turn: int | None = None
  ) -> 'InProcessTransport':
    """Returns this transport for an actor with its own waits and its turn."""
    one = copy.copy(self)
    one._place, one._turn = place, turn
    return one

  def make_writer(self, **settings) -> replay.Writer:
    return local.LocalWriter(
      self._table, self._place, turn=self._turn, **settings
    )

  def make_learner_side(self) -> learner_side.LearnerSide:
    return InProcessLearnerSide(self)


def check_in_process(experience: experience_lib.Experience) -> None:
  """Raises a ValueError that names what needs a replay server, if anything."""
  if len(experience.tables) > 1:
    names = [table.name for table in experience.tables]
    raise ValueError(
      'tables of an experience, without a replay server, must be one table; '
      f'got {names}.'
    )
  local.check(experience.table)
  if experience.with_targets is not None:
    raise ValueError('with_targets must be None without a replay server.')


class InProcessLearnerSide(learner_side.LearnerSide):
  """Learner side of a table of an in-process transport."""

  kind = InProcessTransport.kind

  def __init__(self, transport: InProcessTransport):
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
    table = self._local_table
    return {table.description.name: table.status()}

  def flush(self) -> None:
    super().flush()
    self._actor_state = self._actors.take()

  def counts(self) -> Mapping[str, int]:
    return self._actor_state.counts if self._actor_state else {}

  def describe(self) -> dict[str, Any]:
    """As the base class; `is_exact` if a run would resume exactly."""
    return {**super().describe(), 'is_exact': self._actor_state is not None}

  def take_snapshot(self) -> Callable[[], str]:
    directory = self._checkpoint_directory
    if not directory:
      raise ValueError('checkpoint_directory must be given to write snapshots.')
    table, contents = self._local_table.description, self._local_table.copy()
    if self._actor_state is not None:
      contents = dataclasses.replace(contents, actors=self._actor_state.saved)
    return lambda: local.write(directory, table, contents)

  def remove_snapshots(self) -> None:
    replay.remove_checkpoints(self._checkpoint_directory)
