"""Writer of recordings, which stores whole episodes in files."""

import contextlib
import os
import time
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import dm_env
import numpy as np
import tree

from repertory.components import types
from repertory.components.checkpoints import checkpointing
from repertory.components.runtime import nests

SUFFIX = '.npz'

_FIRST, _LAST = int(dm_env.StepType.FIRST), int(dm_env.StepType.LAST)

# Files are written at this size or age of ended episodes.
_FILE_BYTES, _FILE_SECONDS = 2**24, 120.0
# Maximum number of time steps in a block, and of blocks in a file of a slot.
_BLOCK_STEPS, _FILE_BLOCKS = 256, 8
# Minimum size of images, which are compressed to a tenth or less.
_IMAGE_BYTES = 2**10


class RecordingError(OSError):
  """Raised if steps cannot be written, for example on a full disk.

  Attributes:
    num_steps: Steps that are in memory and in no file.
    reason: Type and message of the file's error.
  """

  def __init__(self, directory: str, num_steps: int, error: OSError):
    self.num_steps = num_steps
    self.reason = f'{type(error).__name__}: {error}'
    super().__init__(
      f'{num_steps:,} steps cannot be written to {directory} ({self.reason}).'
    )


class _Span(NamedTuple):
  """Successive time steps of a slot, from `start` up to `stop`, exclusive."""

  slot: int
  start: int
  stop: int


class RecordingWriter:
  """Collects the time steps of all slots, and writes whole episodes.

  A file has the columns of `data_set.DataSetSteps`. It gets its name when it is
  complete, so a killed run leaves no damaged files, and loses only the steps
  since the last file. Only episodes larger than two files are split: the first
  part ends without LAST, and the next part begins with the time step at which
  the first one ended. Episodes that are open at the end have no LAST.

  Several writers may share a folder, if their names differ.
  """

  def __init__(
    self,
    directory: str,
    name: str,
    *,
    num_episodes: Sequence[int] | None = None,
    file_bytes: int = _FILE_BYTES,
  ):
    """Initializes the writer, without writing.

    Args:
      directory: Folder created by `manifest.prepare`.
      name: Prefix of the files; numbering continues after existing files.
      num_episodes: Number of episodes to write per slot, `[B]`, without splits;
        None for all.
      file_bytes: Approximate size of episodes at which they are written.
    """
    self._directory = directory
    self._name = name
    self._num_left = None if num_episodes is None else list(num_episodes)
    self._file_bytes = file_bytes
    self._names: list[str] = []
    # Leaves `[B, block_steps, ...]`, because small arrays take much memory.
    self._blocks: list[list[np.ndarray]] = []
    self._num_steps = self._block_steps = 0
    # Per slot: first unwritten time step, and end of the last ended episode.
    self._starts = self._stops = np.zeros([0], np.int64)
    self._row_bytes = 0.0
    self._now: dm_env.TimeStep | None = None
    self._action: Any = None
    self._number = 0
    self._since = time.monotonic()

  def __getstate__(self) -> dict[str, Any]:
    """Leaves out unwritten steps, because this process writes them."""
    return {**vars(self), **self._empty_state()}

  def _empty_state(self) -> dict[str, Any]:
    none = np.zeros([0], np.int64)
    return {'_blocks': [], '_num_steps': 0, '_starts': none, '_stops': none}

  def begin(self, timestep: dm_env.TimeStep) -> None:
    """Adds the first time step of all slots, `[B]`; open episodes stay open."""
    self._end_stream()
    self._now = timestep

  def add(self, action: types.Nest, next_timestep: dm_env.TimeStep) -> None:
    """Adds actions `[B, ...]` and the time steps `[B]` that follow.

    Arrays of time steps must never change.

    Raises:
      RecordingError: If a file cannot be written. Its steps stay in memory, and
        `close` writes them.
    """
    action = tree.map_structure(np.array, action)
    if self._now is not None:
      self._keep(self._now, action)
    self._now, self._action = next_timestep, action
    if self._is_due():
      self._write()

  def close(self, keeps_open: bool = True) -> None:
    """Writes the remaining steps; `add` may continue the open episodes.

    Args:
      keeps_open: Whether to write episodes that have not ended, too.

    Raises:
      RecordingError: If a file cannot be written. Its steps are lost.
    """
    self._end_stream(keeps_open)

  def _end_stream(self, keeps_open: bool = True) -> None:
    """Adds the last time step, which has no action, and writes everything."""
    if self._now is None or not self._num_steps:
      return
    now, self._now = self._now, None
    try:
      self._keep(now, tree.map_structure(np.zeros_like, self._action))
      if keeps_open:
        self._stops[:] = self._num_steps
        if self._num_left is not None:
          self._stops = np.where(self._num_left, self._stops, self._starts)
      self._write()
    finally:
      vars(self).update(self._empty_state())
      self._now = now

  def _keep(self, timestep: dm_env.TimeStep, action: types.Nest) -> None:
    if not self._names:
      self._names = [
        'step_type', 'reward', 'discount',
        *nests.paths_of(timestep.observation, 'observation'),
        *nests.paths_of(action, 'action'),
      ]  # fmt: skip
    leaves = [
      timestep.step_type, timestep.reward, timestep.discount,
      *tree.flatten(timestep.observation), *tree.flatten(action),
    ]  # fmt: skip
    if not self._num_steps:
      size = len(timestep.step_type)
      self._starts, self._stops = np.zeros([2, size], np.int64)
      self._row_bytes = sum(leaf.nbytes for leaf in leaves) / size
      most = self._file_bytes / self._row_bytes / _FILE_BLOCKS
      self._block_steps = max(1, min(_BLOCK_STEPS, int(most)))
    size, row = self._block_steps, self._num_steps % self._block_steps
    if not row:
      self._blocks.append([np.repeat(x[:, None], size, 1) for x in leaves])
    for column, leaf in zip(self._blocks[-1], leaves):
      np.copyto(column[:, row], leaf)
    self._num_steps += 1
    for slot in (timestep.step_type == _LAST).nonzero()[0]:
      if self._num_left is None or self._num_left[slot]:
        self._stops[slot] = self._num_steps
        if self._num_left is not None:
          self._num_left[slot] -= 1

  def _is_due(self) -> bool:
    """Returns whether to write: enough episodes ended, or one is too long."""
    if not self._num_steps:
      return False
    file_rows = self._file_bytes / self._row_bytes
    num_ended = int(np.sum(self._stops - self._starts))
    if num_ended > file_rows:
      return True
    if num_ended and time.monotonic() - self._since > _FILE_SECONDS:
      return True
    if self._num_left is not None:
      return False
    lengths = self._num_steps - self._stops
    # One at a time, because writing takes memory, too.
    longest = lengths.argmax()
    if lengths[longest] <= 2 * file_rows:
      return False
    # The next part begins with the time step at which this one ends.
    self._stops[longest] = self._num_steps
    return True

  def _write(self) -> None:
    """Writes the time steps up to the stops of all slots to a file."""
    self._since = time.monotonic()
    spans = self._spans(self._stops)
    if spans:
      try:
        self._save(spans)
      except OSError as error:
        num_steps = self._count_unwritten()
        raise RecordingError(self._directory, num_steps, error) from error
    for slot, _, stop in spans:
      ((last,),) = self._rows(0, _Span(slot, stop - 1, stop))
      self._starts[slot] = self._stops[slot] = stop - (last != _LAST)
    needed = self._starts
    if self._num_left is not None:  # Finished slots need none.
      is_done = np.array(self._num_left) == 0
      needed = np.where(is_done, self._num_steps, needed)
    size = int(needed.min())
    if size < self._num_steps:  # Otherwise all blocks are dropped.
      size -= size % self._block_steps
    del self._blocks[: -(-size // self._block_steps)]
    self._num_steps -= size
    self._starts -= size
    self._stops -= size

  def _spans(self, stops: np.ndarray) -> list[_Span]:
    """Returns the unwritten time steps of each slot that has any."""
    rows = enumerate(zip(self._starts.tolist(), stops.tolist()))
    return [_Span(slot, *span) for slot, span in rows if span[0] < span[1]]

  def _count_unwritten(self) -> int:
    """Returns the number of unwritten steps of all slots."""
    stops = self._stops
    if self._num_left is None:
      stops = np.full_like(stops, self._num_steps)
    found = [np.concatenate(self._rows(0, s))[1:] for s in self._spans(stops)]
    if self._now is not None and self._num_left is None:
      found.append(self._now.step_type)
    return sum(int((step_type != _FIRST).sum()) for step_type in found)

  def _rows(self, leaf: int, span: _Span) -> list[np.ndarray]:
    """Returns views of a slot's time steps, `[T, ...]`, in order."""
    slot, start, stop = span
    size = self._block_steps
    return [
      self._blocks[i][leaf][slot, max(start - i * size, 0) : stop - i * size]
      for i in range(start // size, (stop - 1) // size + 1)
    ]

  def _columns(
    self, spans: Sequence[_Span]
  ) -> Iterator[tuple[str, np.ndarray]]:
    """Yields names and columns, one at a time, because all may be large."""
    for leaf, name in enumerate(self._names):
      parts = [self._rows(leaf, span) for span in spans]
      column = np.concatenate([rows for part in parts for rows in part])
      if leaf == 0:  # Continued episodes begin with FIRST, too.
        lengths = np.array([stop - start for _, start, stop in spans])
        column[np.cumsum(lengths) - lengths] = _FIRST
      yield name, column

  def _save(self, spans: Sequence[_Span]) -> None:
    temporary = os.path.join(self._directory, f'.{uuid.uuid4().hex}')
    is_image = any(
      leaf.dtype == np.uint8 and leaf[0, 0].nbytes > _IMAGE_BYTES
      for leaf in self._blocks[0]
    )
    method = zipfile.ZIP_DEFLATED if is_image else zipfile.ZIP_STORED
    try:
      checkpointing.write_arrays(temporary, self._columns(spans), method)
      with open(temporary, 'rb') as file:
        os.fsync(file.fileno())
      self._name_next(temporary)
    finally:
      with contextlib.suppress(FileNotFoundError):
        os.remove(temporary)

  def _name_next(self, temporary: str) -> None:
    """Renames a file to the next free name."""
    while True:
      name = f'{self._name}_{self._number:06d}{SUFFIX}'
      path = os.path.join(self._directory, name)
      self._number += 1
      try:  # Another run of the same seed may take the name at the same time.
        os.link(temporary, path)
      except OSError:
        if os.path.exists(path):
          continue
        os.rename(temporary, path)  # The file system does not support links.
      return
