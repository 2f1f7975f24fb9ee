"""The road that stays in one process."""

import copy
import dataclasses
import os
import threading
from collections.abc import Mapping
from typing import Any

from repertory.components import datasets, replay
from repertory.components import experience as experience_lib
from repertory.components.replay import local, waits
from repertory.components.roads import actor_snapshots, learner_end, road
from repertory.components.roads import parts as parts_lib

# What of `Parts` needs a replay server.
_OF_SERVERS = ('make_dataset', 'make_priority_updater')


@dataclasses.dataclass
class ActorStates:
  """Where those are who act, in snapshots of the table.

  Attributes:
    restored: What the snapshot had of them that the road began with; empty if
      nothing.
    source: What the next ones are to have; None for nothing.
  """

  restored: bytes = b''
  source: actor_snapshots.ActorSnapshots | None = None


class LocalRoad(road.Road):
  """Items are put into a table of this process, and batches taken from there.

  All ends are in one process, in as many threads as one likes. Batches are
  drawn as they are asked for, whatever `Experience.prefetch` says. Items need
  no bundles, so the table has none.

  In one thread everything follows from the seed. With several that act, what
  is in a batch depends on who was faster; unless the table is a queue and they
  take turns: then the k-th items that each of them puts follow on one another,
  in the order of their turns, and whoever is early waits.

  Attributes:
    actors: What snapshots have besides items.
  """

  kind = 'local'

  def __init__(
    self,
    experience: experience_lib.Experience,
    parts: parts_lib.Parts,
    *,
    seed: int,
    place: local.Place | None = None,
    checkpoint_directory: str = '',
    num_turns: int | None = None,
    before: 'LocalRoad | None' = None,
  ):
    """Makes the table, and fills it from a snapshot if there is one.

    Args:
      experience: What is carried.
      parts: Makes adders.
      seed: For the draws, unless a snapshot has the state of their random
        numbers.
      place: Its time-out and stop signal end every wait.
      checkpoint_directory: Where snapshots are written to, and from where one
        is read now. What is there is removed then: links would keep the room
        of checkpoints that are removed.
      num_turns: Adders that take turns, each made by a road of `in_turn`; None
        if they do not.
      before: The leg that leads to those who write to this one. A snapshot of
        this one has its table, too.

    Raises:
      ValueError: If this needs a replay server, see `check_local`.
      CheckpointError: If the snapshot cannot be read or is of another table.
    """
    check_local(experience, parts)
    self._experience = experience = experience.with_table(bundle_size=1)
    self._parts = parts
    self._place = place or local.Place()
    self._checkpoint_directory = checkpoint_directory
    self._turn: int | None = None
    self._table = local.Table(experience.table, seed, num_turns)
    self.actors = ActorStates()
    self._before = before
    self._labeled: LocalRoad | None = None
    if checkpoint_directory:
      part = '' if before is None else experience.table.name
      contents = local.read(checkpoint_directory, experience.table, part)
      if contents is not None:
        with local.reading(f'{checkpoint_directory} of a checkpoint'):
          self._table.restore(contents)
        self.actors.restored = contents.actors
    if experience.labeled is not None:
      self._labeled = LocalRoad(
        experience.labeled,
        parts,
        seed=seed + 1,
        place=place,
        checkpoint_directory=checkpoint_directory,
        before=self,
      )
    elif checkpoint_directory:  # All have read it.
      replay.remove_checkpoints(checkpoint_directory)

  def in_turn(self, turn: int) -> 'LocalRoad':
    """Returns this road for one of those who take turns.

    Args:
      turn: Which, from 0. There is one adder at a time with each.
    """
    one = copy.copy(self)
    one._turn = turn
    return one

  def at(self, place: local.Place) -> 'LocalRoad':
    """Returns this road for ends with a time-out and stop signal of their own.

    So whoever is in a thread of its own can be told to end before others.

    Args:
      place: These end every wait of its ends.
    """
    one = copy.copy(self)
    one._place = place
    return one

  @property
  def labeled(self) -> 'LocalRoad | None':
    return self._labeled

  def make_writer(self, **settings) -> replay.Writer:
    return local.LocalWriter(
      self._table, self._place, turn=self._turn, **settings
    )

  def make_learner_end(self) -> learner_end.LearnerEnd:
    return LocalEnd(
      self._experience,
      self._table,
      self._place,
      self._checkpoint_directory,
      self.actors,
      self._before,
    )


def check_local(
  experience: experience_lib.Experience, parts: parts_lib.Parts
) -> None:
  """Refuses what only a road over a replay server can do.

  Args:
    experience: What is to be carried.
    parts: The agent's.

  Raises:
    ValueError: Naming it.
  """
  for name in _OF_SERVERS:
    if getattr(type(parts), name) is not getattr(parts_lib.Parts, name):
      raise ValueError(
        f'{type(parts).__name__} must not have a {name} of its own where there '
        'is no replay server: it would not be called.'
      )
  if len(experience.tables) > 1:
    names = [table.name for table in experience.tables]
    raise ValueError(
      'tables of an experience, without a replay server, must be one table; '
      f'got {names}.'
    )
  local.check(experience.with_table(bundle_size=1).table)
  if experience.labeled is not None:
    check_local(experience.labeled, parts)


class LocalEnd(learner_end.LearnerEnd):
  """Reads a table of this process."""

  kind = LocalRoad.kind

  def __init__(
    self,
    experience: experience_lib.Experience,
    table: local.Table,
    place: local.Place,
    checkpoint_directory: str,
    actors: ActorStates,
    before: LocalRoad | None = None,
  ):
    self._local_table = table
    # The first is the one that actors write to.
    self._local_tables = [table]
    if before is not None:
      self._local_tables.insert(0, before._table)
      actors = before.actors
    self._actors = actors
    self._moment: actor_snapshots.Moment | None = None
    self._checkpoint_directory = checkpoint_directory
    self._is_taken = threading.Event()
    super().__init__(experience, place)
    self.batches = datasets.LocalBatches(table, experience.batch_size, place)
    self.priorities = None
    if experience.min_priority is not None:
      self.priorities = local.LocalPriorities(table, experience.min_priority)

  def statuses(self) -> Mapping[str, replay.TableStatus]:
    return {
      table.description.name: table.status() for table in self._local_tables
    }

  def _check_wait(self, status: replay.TableStatus) -> None:
    if self._local_table.is_of_one_thread():
      table, batch_size = self._table, self._experience.batch_size
      raise waits.nobody_inserts(table, status, batch_size)

  def prepare(self) -> bool:
    source = self._actors.source
    samples = self._local_tables[0].status().samples
    return source is None or source.prepare(samples)

  def flush(self) -> None:
    super().flush()
    source = self._actors.source
    self._moment = None if source is None else source.take()

  def counts(self) -> Mapping[str, int]:
    return self._moment.counts if self._moment else {}

  def describe(self) -> dict[str, Any]:
    """Returns what is to be found again, and whether a run goes on exactly."""
    described, moment = super().describe(), self._moment
    described['is_exact'] = moment is not None
    if moment is not None and moment.num_inserts is not None:
      name = self._local_tables[0].description.name
      described['tables'][name]['inserts'] = moment.num_inserts
    return described

  def write_snapshot(self) -> str:
    directory = self._checkpoint_directory
    if not directory:
      raise ValueError('checkpoint_directory must be given to write snapshots.')
    os.makedirs(directory, exist_ok=True)
    contents, *others = [table.copy() for table in self._local_tables]
    moment = self._moment
    if moment is not None:
      if moment.num_inserts is not None:
        contents = contents.until(moment.num_inserts)
      contents = dataclasses.replace(contents, actors=moment.saved)
    self._is_taken.set()
    first, *further = [table.description for table in self._local_tables]
    return local.write(directory, first, contents, list(zip(further, others)))

  def is_snapshot_taken(self) -> bool:
    return self._is_taken.is_set()

  def remove_snapshots(self) -> None:
    self._is_taken.clear()
    replay.remove_checkpoints(self._checkpoint_directory)
