"""Recorded data: a transport without actors, and demonstrations."""

import contextlib
import dataclasses
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import dm_env
import numpy as np
import tensorflow as tf
import tree

from repertory.components import adders, offline, replay, specs, types
from repertory.components.checkpoints import checkpointing
from repertory.components.replay import local
from repertory.components.replay.local import snapshots
from repertory.components.transports import experience as experience_lib
from repertory.components.transports import in_process, transport

_FIRST, _LAST = int(dm_env.StepType.FIRST), int(dm_env.StepType.LAST)

# Minimum size of chunks that are cut together; smaller ones are merged.
_CHUNK_BYTES = 2**22
# Maximum number of episodes that are cut in parallel.
_MAX_SLOTS = 256

# The key of demonstrations: no table has it, so new priorities are ignored.
_NO_KEY = np.uint64(2**64 - 1)

# Files of a snapshot.
_STATE, _PRIORITIES = 'draws.json', 'priorities.npy'


class OfflineTransport(in_process.InProcessTransport):
  """Cuts recorded episodes into items once, and samples them indefinitely.

  The items are in a local table, which differs from the agent's in size and
  rate limit: it has room for all items, removes none, and never blocks. A
  snapshot has priorities and the state of the sampler, but no items: a resumed
  run reads the data again. If the data have changed, sampling and priorities
  restart.

  In one thread all samples follow from the seed.

  Attributes:
    is_resumed: Whether sampling resumes from a snapshot; known after `fill`.
    checksum: CRC-32 of the data, without observations; known after `fill`.
  """

  kind = transport.OFFLINE

  def __init__(
    self,
    experience: experience_lib.Experience,
    adder_factory: transport.AdderFactory,
    lengths: np.ndarray,
    *,
    seed: int,
    place: local.WaitPolicy | None = None,
    checkpoint_directory: str = '',
  ):
    """Creates the table; `fill` must be called next.

    `lengths` `[E]` are the steps of all episodes; for the others see
    `InProcessTransport`. Raises a ValueError if the experience does not work
    with recorded data.
    """
    check_offline(experience)
    super().__init__(
      unlimited(experience, lengths), adder_factory, seed=seed, place=place
    )
    self._checkpoint_directory = checkpoint_directory
    self.checksum = 0
    self.is_resumed = False

  def fill(
    self,
    chunks: Iterable[offline.DataSetSteps],
    report: Callable[[int], None] = lambda num_timesteps: None,
  ) -> None:
    """Cuts all items, and restores the sampler from a snapshot.

    `report` is often called, with the number of cut time steps.

    Raises:
      DataError: If the data cannot be read.
      signals.Stopped: If the stop signal was set.
      CheckpointError: If the snapshot cannot be read.
    """
    num_timesteps = 0
    for steps in _merge(map(_close_episodes, self._note(chunks))):
      starts = steps.starts
      ends = np.append(starts[1:], len(steps.step_type))
      is_long = ends - starts > 1
      if is_long.any():
        self._cut(steps, starts[is_long], ends[is_long], num_timesteps, report)
        num_timesteps += len(steps.step_type)
    directory = self._checkpoint_directory
    if not directory:
      return
    with local.reading(f'{directory} of a checkpoint'):
      folder = snapshots.find(directory)
      if folder is not None:
        with open(os.path.join(folder, _STATE)) as file:
          state = json.load(file)
        path = os.path.join(folder, _PRIORITIES)
        state['priorities'] = np.load(path, allow_pickle=False)
        self.is_resumed = self.restore_sampler(state)
    replay.remove_checkpoints(directory)

  def _note(
    self, chunks: Iterable[offline.DataSetSteps]
  ) -> Iterator[offline.DataSetSteps]:
    """Yields the chunks unchanged, and updates the checksum."""
    for steps in chunks:
      # Observations follow from the rest, and may be large.
      for leaf in tree.flatten(steps._replace(observation=())):
        data = np.ascontiguousarray(leaf).data
        self.checksum = zlib.crc32(data, self.checksum)
      yield steps

  def _cut(
    self,
    steps: offline.DataSetSteps,
    starts: np.ndarray,
    ends: np.ndarray,
    num_cut: int,
    report: Callable[[int], None],
  ) -> None:
    """Adds episodes to the agent's own adder, in parallel slots of a batch."""
    items = self.experience.items
    # Images are copied one by one, however many slots there are. And if items
    # cross the ends of episodes, a slot without further episodes would create
    # empty items.
    has_images = bool(self.experience.table.packing.whole)
    is_cut_one_by_one = has_images or items.slots_end_together
    num_slots = 1 if is_cut_one_by_one else min(_MAX_SLOTS, len(starts))
    rows, last = starts[:num_slots].copy(), ends[:num_slots] - 1
    begun = num_slots
    is_idle = np.zeros([num_slots], bool)
    extras = _make_extras(items, num_slots)
    writer = local.LocalWriter(
      self.table,
      self.place,
      version=lambda: -1,  # The actions come from another policy.
      max_pending_items=self.experience.table.max_size,
    )
    adder = self._adder_factory(self.experience, writer, num_slots)
    with contextlib.closing(adder):
      adder.add_first(_timestep(steps, rows))
      while True:
        self.place.stop.check()
        report(num_cut)
        num_cut += num_slots - int(is_idle.sum())
        action = _take(steps.action, rows)
        ended = (rows == last).nonzero()[0]
        rows[~is_idle] += 1
        for slot in ended:
          if begun < len(starts):
            rows[slot], last[slot] = starts[begun], ends[begun] - 1
            begun += 1
          else:
            # A slot that stays at an episode's start creates no items.
            rows[slot], last[slot] = starts[0], -1
            is_idle[slot] = True
        if is_idle.all():
          return
        adder.put(action, _timestep(steps, rows), extras)

  def sampler_state(self) -> dict[str, Any]:
    """Returns plain values with the state of uniform sampling."""
    random = self.table.copy(has_leaves=False).random
    return {'checksum': self.checksum, 'random': random}

  def restore_sampler(self, state: dict[str, Any]) -> bool:
    """Restores the sampler if `state` is of the same data; returns success."""
    if state['checksum'] != self.checksum:
      return False
    changes = {key: state[key] for key in snapshots.COUNTS if key in state}
    contents = self.table.copy(has_leaves=False)
    if (priorities := state.get('priorities')) is not None:
      changes['items'] = contents.items._replace(priorities=priorities)
    self.table.restore(dataclasses.replace(contents, **changes))
    return True

  def make_writer(self, **settings: Any) -> replay.Writer:
    raise RuntimeError('Recorded data must not change: nothing can be added.')

  def is_exact(self, actors: transport.ActorState | None) -> bool:
    return True

  def check_restored(
    self,
    checkpoint: checkpointing.Checkpoint,
    opened_with: Mapping[str, replay.TableInfo],
  ) -> None:
    """Does nothing, because all data were read again."""

  def take_snapshot(
    self, actors: transport.ActorState | None
  ) -> Callable[[], str]:
    """As the base class, of the sampler's state."""
    contents = self.table.copy(has_leaves=False)

    def write() -> str:
      state = {name: getattr(contents, name) for name in snapshots.COUNTS}
      state['checksum'] = self.checksum
      with snapshots.replacing(self._checkpoint_directory) as (folder, path):
        priorities = contents.items.priorities
        np.save(os.path.join(folder, _PRIORITIES), priorities)
        with open(os.path.join(folder, _STATE), 'w') as file:
          json.dump(state, file, indent=2)
      return path

    return write


def unlimited(
  experience: experience_lib.Experience, lengths: np.ndarray
) -> experience_lib.Experience:
  """Returns the experience with a table for episodes of `lengths`, `[E]`."""
  num_items = max(1, experience.items.max_items_of(lengths))
  return experience.with_table(max_size=num_items, rate_limit=replay.UNLIMITED)


def check_offline(experience: experience_lib.Experience) -> None:
  """Raises a ValueError that says why recorded data do not suffice, if so."""
  table, extras = experience.table, experience.items.extras_spec
  if table.is_queue:
    raise ValueError(
      'it learns from each item once, soon after acting: recorded data come '
      'from another policy, and are sampled repeatedly. Use an agent with a '
      'replay buffer'
    )
  if isinstance(extras, types.SequenceExtras):
    extras = extras.step
  if extras != ():
    raise ValueError(
      f'its items need outputs of its own policy with each action ({extras}), '
      'which recorded data lack'
    )


class Demonstrations(replay.Batches):
  """Adds uniformly sampled rows of recorded data to every batch.

  Demonstrations are spread evenly over the batch, so that each part of it has
  its share, and are marked in it, see `types.Sample`. They have no priorities:
  importance weights treat them as uniform samples from a separate table.

  Attributes:
    transport: The recorded data, and the state of their sampler.
    replayed: Batches of the other rows, set by `LearnerSide.mix_in`.
    is_resumed: Whether sampling resumes from a checkpoint.
  """

  replayed: replay.Batches
  is_resumed = False

  def __init__(
    self,
    experience: experience_lib.Experience,
    transport: OfflineTransport,
  ):
    """Takes a filled transport of `experience.demonstrated`."""
    self.transport = transport
    self._demonstrated = transport.make_learner_side().batches
    size, count = experience.rows, experience.num_demonstrations
    # Row i follows ⌊i · count / size⌋ demonstrations.
    self._is_demonstrated = np.diff(np.arange(size + 1) * count // size) > 0

  @property
  def element_spec(self) -> types.Sample:
    size = len(self._is_demonstrated)
    spec = tree.map_structure(
      lambda spec: tf.TensorSpec([size, *spec.shape[1:]], spec.dtype),
      self.replayed.element_spec,
    )
    return spec._replace(is_demonstration=tf.TensorSpec([size], tf.bool))

  def __next__(self) -> types.Sample:
    mixed = tree.map_structure(
      self._mix, next(self.replayed), next(self._demonstrated)
    )
    mixed.keys[self._is_demonstrated] = _NO_KEY
    return mixed._replace(is_demonstration=self._is_demonstrated)

  def _mix(self, replayed: types.Array, demonstrated: np.ndarray) -> np.ndarray:
    mixed = np.empty(
      [len(self._is_demonstrated), *demonstrated.shape[1:]], demonstrated.dtype
    )
    mixed[~self._is_demonstrated] = replayed
    mixed[self._is_demonstrated] = demonstrated
    return mixed

  def restore(self, state: dict | None) -> None:
    """Restores `transport.sampler_state()` if it is of the same data."""
    self.is_resumed = state is not None and self.transport.restore_sampler(
      state
    )

  def reset_timeout(self) -> None:
    self.replayed.reset_timeout()

  def close(self) -> None:
    self.replayed.close()


def _close_episodes(steps: offline.DataSetSteps) -> offline.DataSetSteps:
  """Marks start and end of episodes, or of their parts, by FIRST and LAST."""
  starts, step_type = steps.starts, np.array(steps.step_type)
  step_type[np.append(starts[1:], len(step_type)) - 1] = _LAST
  step_type[starts] = _FIRST
  return steps._replace(step_type=step_type)


def _merge(
  chunks: Iterable[offline.DataSetSteps],
) -> Iterator[offline.DataSetSteps]:
  """Merges small chunks of closed episodes."""
  waiting: list[offline.DataSetSteps] = []
  num_bytes = 0
  for steps in chunks:
    waiting.append(steps)
    num_bytes += sum(leaf.nbytes for leaf in tree.flatten(steps))
    if num_bytes >= _CHUNK_BYTES:
      yield _concatenate(waiting)
      waiting, num_bytes = [], 0
  if waiting:
    yield _concatenate(waiting)


def _concatenate(parts: list[offline.DataSetSteps]) -> offline.DataSetSteps:
  if len(parts) == 1:
    return parts[0]
  return tree.map_structure(lambda *leaves: np.concatenate(leaves), *parts)


def _timestep(steps: offline.DataSetSteps, rows: np.ndarray) -> dm_env.TimeStep:
  step_type: Any = steps.step_type[rows]
  return dm_env.TimeStep(
    step_type=step_type,
    reward=steps.reward[rows],
    discount=steps.discount[rows],
    observation=_take(steps.observation, rows),
  )


def _take(nest: types.Nest, rows: np.ndarray) -> types.Nest:
  return tree.map_structure(lambda leaf: leaf[rows], nest)


def _make_extras(items: adders.ItemSpec, num_slots: int) -> types.Nest:
  """Returns extras with a zero recurrent state, as at an episode's start."""
  extras = items.extras_spec
  if isinstance(extras, types.SequenceExtras):
    return extras._replace(state=specs.zeros(extras.state, num_slots))
  return ()
