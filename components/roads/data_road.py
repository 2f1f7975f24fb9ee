"""The road of what was recorded before: it has a learner end alone."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from repertory.components import (
  adders,
  checkpointing,
  recordings,
  replay,
  specs,
  types,
)
from repertory.components import experience as experience_lib
from repertory.components.replay import local
from repertory.components.roads import draws, learner_end, local_road, road
from repertory.components.roads import parts as parts_lib

# All that is drawn before has had no priority computed.
_FIRST_PRIORITY = 1.0
# Nor was it acted with what is learned here.
_NO_VERSION = -1


class DataRoad(road.Road):
  """Items are cut from episodes once, and drawn for as long as one likes.

  They are in a table of this process, which is the agent's but for its size and
  its rate limit: it has room for all, none leave, and nobody waits. A snapshot
  has priorities and the state of the draws, and no items: whoever goes on reads
  the data again. If they are others then, draws and priorities begin anew.

  In one thread all draws follow from the seed.

  Attributes:
    goes_on: Whether it draws on as a snapshot has it; known when it is filled.
  """

  kind = road.DATA

  def __init__(
    self,
    experience: experience_lib.Experience,
    parts: parts_lib.Parts,
    lengths: np.ndarray,
    *,
    seed: int,
    place: local.Place | None = None,
    checkpoint_directory: str = '',
  ):
    """Makes the table; `fill` is called next.

    Args:
      experience: How items are cut and drawn.
      parts: Makes adders.
      lengths: Steps of all episodes, `[E]`.
      seed: For the draws, unless a snapshot has the state of their random
        numbers.
      place: Its stop signal ends every wait.
      checkpoint_directory: Where snapshots are written to, and from where one
        is read.

    Raises:
      ValueError: If the experience cannot be drawn from a table of data.
    """
    check_data(experience, parts)
    self._experience = unlimited(experience, lengths)
    self._parts = parts
    self._place = place or local.Place()
    self._checkpoint_directory = checkpoint_directory
    self._table = local.Table(self._experience.table, seed)
    self._fingerprint = draws.Fingerprint()
    self.goes_on = False

  def fill(
    self,
    chunks: Iterable[recordings.Steps],
    report: Callable[[int], None] = lambda num_moments: None,
  ) -> None:
    """Cuts all items, and goes on drawing as a snapshot has it.

    Args:
      report: Called often, with the number of moments that were cut so far.

    Raises:
      DataError: If the data cannot be read.
      signals.Stopped: If the stop signal was set.
      CheckpointError: If the snapshot cannot be read.
    """

    def check(num_moments: int) -> None:
      self._place.stop.check()
      report(num_moments)

    recordings.fill(
      self._fingerprint.taken_of(chunks),
      self._make_adder,
      lambda num_slots: _make_extras(self._experience.items, num_slots),
      check=check,
      **({'max_slots': 1} if self._is_cut_one_by_one else {}),
    )
    directory = self._checkpoint_directory
    if directory:
      with local.reading(f'{directory} of a checkpoint'):
        contents = draws.read(directory, self._fingerprint)
        if contents is not None:
          self._table.restore(contents)
          self.goes_on = True
      replay.remove_checkpoints(directory)

  @property
  def _is_cut_one_by_one(self) -> bool:
    # Images are handed on one by one however many slots there are. And a slot
    # that has come to its end would go on to make items of nothing, if they go
    # on over the end of an episode.
    experience = self._experience
    has_images = bool(experience.table.packing.whole)
    return has_images or experience.items.slots_end_together

  def describe_draws(self) -> dict[str, Any]:
    """Returns plain values that tell how data go on to be drawn uniformly."""
    contents = self._table.copy(has_leaves=False)
    return {**vars(self._fingerprint), 'random': contents.random}

  def draw_on(self, described: dict[str, Any]) -> bool:
    """Draws on as described, if it is of the same data; returns whether."""
    if described['checksum'] != self._fingerprint.checksum:
      return False
    contents = self._table.copy(has_leaves=False)
    self._table.restore(
      dataclasses.replace(contents, random=described['random'])
    )
    return True

  def make_writer(self, **settings: Any) -> replay.Writer:
    raise RuntimeError('Nothing can be added to data that were recorded.')

  def make_learner_end(self) -> learner_end.LearnerEnd:
    return _DataEnd(
      self._experience,
      self._table,
      self._place,
      self._checkpoint_directory,
      self._fingerprint,
    )

  def _make_adder(self, num_slots: int) -> adders.Adder:
    writer = local.LocalWriter(
      self._table,
      self._place,
      priority=lambda: _FIRST_PRIORITY,
      version=lambda: _NO_VERSION,
      max_pending_items=self._experience.table.max_size,
    )
    return self._parts.make_adder(self._experience, writer, num_slots)


def unlimited(
  experience: experience_lib.Experience, lengths: np.ndarray
) -> experience_lib.Experience:
  """Returns the same, whose table has room for all episodes and no limit.

  Args:
    lengths: Steps of all episodes, `[E]`.
  """
  num_items = max(1, experience.items.max_items_of(lengths))
  return experience.with_table(
    max_size=num_items,
    bundle_size=1,
    rate_limit=replay.UNLIMITED,
  )


def check_data(
  experience: experience_lib.Experience, parts: parts_lib.Parts
) -> None:
  """Refuses what cannot be drawn again and again, or that no data have.

  Raises:
    ValueError: Saying why.
  """
  table, items = experience.table, experience.items
  if table.is_queue or table.max_times_sampled:
    raise ValueError(
      'it learns from each item once, soon after it acted: data were lived by '
      'another policy, and are drawn again and again. Agents that replay can'
    )
  if _step_extras(items) != ():
    raise ValueError(
      'its items need what its own policy gives with each action '
      f'({_step_extras(items)}), which no data have'
    )
  local_road.check_local(experience, parts)


class _DataEnd(local_road.LocalEnd):
  """Reads a table of data; saves how it is drawn from."""

  kind = DataRoad.kind

  def __init__(
    self,
    experience: experience_lib.Experience,
    table: local.Table,
    place: local.Place,
    checkpoint_directory: str,
    fingerprint: draws.Fingerprint,
  ):
    super().__init__(
      experience, table, place, checkpoint_directory, local_road.ActorStates()
    )
    self._fingerprint = fingerprint

  def describe(self) -> dict[str, Any]:
    return {**super().describe(), 'is_exact': True}

  def check_restored(self, checkpoint: checkpointing.Checkpoint) -> None:
    """Does nothing: all there is was read anew."""

  def write_snapshot(self) -> str:
    contents = self._local_table.copy(has_leaves=False)
    self._is_taken.set()
    return draws.write(self._checkpoint_directory, contents, self._fingerprint)


def _step_extras(items: adders.Items) -> types.Nest:
  extras = items.extras_spec
  return extras.step if isinstance(extras, types.SequenceExtras) else extras


def _make_extras(items: adders.Items, num_slots: int) -> types.Nest:
  """Returns extras without a memory: zeros, as at the start of an episode."""
  extras = items.extras_spec
  if isinstance(extras, types.SequenceExtras):
    return extras._replace(state=specs.zeros(extras.state, num_slots))
  return ()
