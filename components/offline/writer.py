"""Writer of recordings, which stores whole episodes in files."""

import contextlib
import math
import os
import time
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

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
    # Bytes of each leaf `[T, B, ...]`, because small arrays take much memory.
    self._buffers: list[bytearray] = []
    self._kinds: list[tuple[np.dtype, tuple[int, ...]]] = []
    self._num_steps = 0
    # Per slot: first unwritten time step, and end of the last ended episode.
    self._starts = self._stops = np.zeros([0], np.int64)
    self._file_rows = 0.0
    self._now: dm_env.TimeStep | None = None
    self._action: Any = None
    self._number = 0
    self._since = time.monotonic()

  def __getstate__(self) -> dict[str, Any]:
    """Leaves out unwritten steps, because this process writes them."""
    return {**vars(self), '_buffers': [], '_num_steps': 0}

  def begin(self, timestep: dm_env.TimeStep) -> None:
    """Adds the first time step of all slots, `[B]`; open episodes stay open."""
    self.close()
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
      self._buffers, self._num_steps, self._now = [], 0, now

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
      self._file_rows = self._file_bytes * size / sum(x.nbytes for x in leaves)
      self._buffers = [bytearray() for _ in leaves]
      self._kinds = [(leaf.dtype, leaf.shape) for leaf in leaves]
    for buffer, leaf, (dtype, _) in zip(self._buffers, leaves, self._kinds):
      buffer.extend(np.ascontiguousarray(leaf, dtype))
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
    num_ended = int(np.sum(self._stops - self._starts))
    if num_ended > self._file_rows:
      return True
    if num_ended and time.monotonic() - self._since > _FILE_SECONDS:
      return True
    if self._num_left is not None:
      return False
    lengths = self._num_steps - self._stops
    # One at a time, because writing takes memory, too.
    longest = lengths.argmax()
    if lengths[longest] <= 2 * self._file_rows:
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
      is_last = self._column(0)[stop - 1, slot] == _LAST
      self._starts[slot] = self._stops[slot] = stop - (not is_last)
    needed = self._starts
    if self._num_left is not None:  # Finished slots need none.
      is_done = np.array(self._num_left) == 0
      needed = np.where(is_done, self._num_steps, needed)
    size = int(needed.min())
    for buffer in self._buffers:
      del buffer[: size * (len(buffer) // self._num_steps)]
    self._num_steps -= size
    self._starts -= size
    self._stops -= size

  def _spans(self, stops: np.ndarray) -> list[tuple[int, int, int]]:
    """Returns slot, start and stop of the unwritten time steps of slots."""
    rows = enumerate(zip(self._starts.tolist(), stops.tolist()))
    return [(slot, *span) for slot, span in rows if span[0] < span[1]]

  def _count_unwritten(self) -> int:
    """Returns the number of unwritten steps of all slots."""
    stops = self._stops
    if self._num_left is None:
      stops = np.full_like(stops, self._num_steps)
    found = [
      np.array(self._column(0)[start + 1 : stop, slot])
      for slot, start, stop in self._spans(stops)
    ]
    if self._now is not None and self._num_left is None:
      found.append(self._now.step_type)
    return sum(int((step_type != _FIRST).sum()) for step_type in found)

  def _column(self, leaf: int) -> np.ndarray:
    """Returns a view `[T, B, ...]`, in whose lifetime no step can be added."""
    dtype, shape = self._kinds[leaf]
    return np.ndarray((self._num_steps, *shape), dtype, self._buffers[leaf])

  def _columns(
    self, spans: Sequence[tuple[int, int, int]]
  ) -> Iterator[tuple[str, np.ndarray]]:
    """Yields names and columns, one at a time, because all may be large."""
    for leaf, name in enumerate(self._names):
      column = np.concatenate(
        [self._column(leaf)[start:stop, slot] for slot, start, stop in spans]
      )
      if leaf == 0:  # Continued episodes begin with FIRST, too.
        lengths = np.array([stop - start for _, start, stop in spans])
        column[np.cumsum(lengths) - lengths] = _FIRST
      yield name, column

  def _save(self, spans: Sequence[tuple[int, int, int]]) -> None:
    temporary = os.path.join(self._directory, f'.{uuid.uuid4().hex}')
    is_image = any(
      dtype == np.uint8 and math.prod(shape[1:]) > _IMAGE_BYTES
      for dtype, shape in self._kinds
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
