"""Writes what an environment batch goes through, in whole files."""

import contextlib
import os
import time
import uuid
from collections.abc import Sequence
from typing import Any

import dm_env
import numpy as np
import tree

from repertory.components import types
from repertory.components.recordings import manifest

SUFFIX = '.npz'

_FIRST, _LAST = int(dm_env.StepType.FIRST), int(dm_env.StepType.LAST)

# When a file is written: whatever comes first, looked at as an episode ends.
_FILE_BYTES, _FILE_SECONDS = 2**24, 120.0
# What is compressed: frames of games are, to a tenth or less.
_IMAGE_BYTES = 2**10


class Writer:
  """Keeps the moments of all slots, and writes them episode by episode.

  A file has the columns of `data_set.Steps`, whole episodes, and gets its name
  when it is whole: so whoever is killed leaves nothing that is damaged, and
  loses what came since the last one. Only an episode that is longer than a file
  is broken up: it ends there without LAST, and another one begins with the
  moment that this ended with. Those that are open at the end have no LAST.

  Several writers may share a folder, if their names differ.
  """

  def __init__(
    self,
    directory: str,
    name: str,
    *,
    num_episodes: Sequence[int] | None = None,
    file_bytes: int = _FILE_BYTES,
    file_seconds: float = _FILE_SECONDS,
  ):
    """Writes nothing yet.

    Args:
      directory: A folder that `manifest.prepare` has made.
      name: How its files begin; after files of that name it goes on.
      num_episodes: How many of each slot are written, `[B]`; None for all.
      file_bytes: Memory that moments take before they are written, about.
      file_seconds: How old they become, about.
    """
    self._directory = directory
    self._name = name
    self._num_left = None if num_episodes is None else list(num_episodes)
    self._file_bytes = file_bytes
    self._file_seconds = file_seconds
    self._names: list[str] = []
    # Moments [B, ...] that are not in a file: a list of leaves for each.
    self._moments: list[list[np.ndarray]] = []
    # And those before them, of each slot, of the episode that is open.
    self._open: list[list[np.ndarray]] = []
    self._now: dm_env.TimeStep | None = None
    self._action: Any = None
    self._num_bytes = 0
    self._number = 0
    self._since = time.monotonic()

  def __getstate__(self) -> dict[str, Any]:
    """Leaves out what it keeps, for it writes that itself."""
    state = dict(vars(self))
    state.update(_moments=[], _open=[], _num_bytes=0)
    return state

  def begin(self, timestep: dm_env.TimeStep) -> None:
    """Takes the first moment of all slots, `[B]`; open episodes stay open."""
    self._end_stream()
    self._now = timestep

  def add(self, action: types.Nest, next_timestep: dm_env.TimeStep) -> None:
    """Takes what was done in the last moment, and what followed.

    Args:
      action: `[B, ...]`.
      next_timestep: `[B]`, of arrays that do not change any more.

    Raises:
      OSError: If a file cannot be written.
    """
    action = tree.map_structure(np.array, action)
    if self._now is not None:
      self._keep(self._now, action)
    self._now, self._action = next_timestep, action
    if self._num_bytes > self._file_bytes or (
      time.monotonic() - self._since > self._file_seconds
      and (next_timestep.step_type == _FIRST).any()
    ):
      self._write(ends=False)

  def close(self, keeps_open: bool = True) -> None:
    """Writes what is left.

    Args:
      keeps_open: Whether to write episodes that have not ended, too.

    Raises:
      OSError: If a file cannot be written.
    """
    self._end_stream(keeps_open)
    self._moments, self._open = [], []

  def _end_stream(self, keeps_open: bool = True) -> None:
    """Keeps the moment in which nothing has been done, and writes all."""
    if self._now is not None and (self._moments or self._open):
      self._keep(self._now, tree.map_structure(np.zeros_like, self._action))
      self._write(ends=keeps_open)
    self._now = None

  def _keep(self, timestep: dm_env.TimeStep, action: types.Nest) -> None:
    if not self._names:
      self._names = [
        'step_type', 'reward', 'discount',
        *manifest.names_of(timestep.observation, 'observation'),
        *manifest.names_of(action, 'action'),
      ]  # fmt: skip
    leaves = [
      timestep.step_type, timestep.reward, timestep.discount,
      *tree.flatten(timestep.observation), *tree.flatten(action),
    ]  # fmt: skip
    self._moments.append(leaves)
    self._num_bytes += sum(leaf.nbytes for leaf in leaves)

  def _write(self, ends: bool) -> None:
    """Writes the episodes that have ended, or all, to a file."""
    self._since = time.monotonic()
    if not self._moments:
      return
    columns = [np.stack(column, axis=1) for column in zip(*self._moments)]
    self._moments = []
    written, left = [], []
    num_slots = len(columns[0])  # Each column is [B, T, ...].
    is_long = self._num_bytes > 2 * self._file_bytes
    for slot in range(num_slots):
      rows = [column[slot] for column in columns]
      if self._open:
        rows = [np.concatenate(pair) for pair in zip(self._open[slot], rows)]
      ended = (rows[0] == _LAST).nonzero()[0]
      if self._num_left is not None:
        ended = ended[: self._num_left[slot]]
        self._num_left[slot] -= len(ended)
      end = next_start = ended[-1] + 1 if ended.size else 0
      if ends or (not end and is_long):
        # What goes on begins with the moment that this ends with.
        end = len(rows[0])
        next_start = max(end - 1, 0)
      written.append([row[:end] for row in rows])
      is_done = self._num_left is not None and not self._num_left[slot]
      left.append([row[:0] if is_done else row[next_start:] for row in rows])
      if end:
        written[-1][0] = rows[0][:end].copy()
        written[-1][0][0] = _FIRST  # Of what went on, too.
    self._open = [] if ends else left
    self._num_bytes = sum(row.nbytes for rows in left for row in rows)
    flat = [np.concatenate(parts) for parts in zip(*written)]
    if len(flat[0]):
      self._save(dict(zip(self._names, flat)))

  def _save(self, columns: dict[str, np.ndarray]) -> None:
    temporary = os.path.join(self._directory, f'.{uuid.uuid4().hex}')
    is_image = any(
      column.dtype == np.uint8 and column[:1].nbytes > _IMAGE_BYTES
      for column in columns.values()
    )
    try:
      with open(temporary, 'wb') as file:
        (np.savez_compressed if is_image else np.savez)(file, **columns)
        file.flush()
        os.fsync(file.fileno())
      self._name_next(temporary)
    finally:
      with contextlib.suppress(FileNotFoundError):
        os.remove(temporary)

  def _name_next(self, temporary: str) -> None:
    """Gives a file the first name that is free from here on."""
    while True:
      name = f'{self._name}_{self._number:06d}{SUFFIX}'
      path = os.path.join(self._directory, name)
      self._number += 1
      try:  # Another run of the same seed may take the name at the same time.
        os.link(temporary, path)
      except OSError:
        if os.path.exists(path):
          continue
        os.rename(temporary, path)  # There are no links on this file system.
      return
