"""Small checkpoints, and storage backends that fail on demand."""

import os
import pathlib

import numpy as np

from repertory.components import checkpoints
from repertory.components.checkpoints import (
  backends,
  checkpointing,
  fsspec_backend,
)


def make_place(kind: str, folder) -> backends.StorageBackend:
  """Returns a storage backend: a path, a file URL, or in memory."""
  if kind == 'path':
    return backends.LocalBackend(str(folder))
  return fsspec_backend.FsspecBackend(f'{kind}://{folder}')


def write_checkpoint(
  directory, value: int, experiment=None, evaluation=None
) -> str:
  """Writes a checkpoint with replay, whose entries all hold one value."""
  replay = pathlib.Path(directory) / '.replay' / f'1-{value}'
  replay.mkdir(parents=True, exist_ok=True)
  (replay / 'items').write_bytes(value.to_bytes(8, 'big') * 1_000)
  state = {
    'counts': {'steps': 10 * value, 'learner_steps': value},
    'experiment': experiment or {'agent': 'a'},
  }
  if evaluation is not None:
    state['evaluation'] = {'episode_return': evaluation, 'steps': value}
  return checkpointing.Checkpointer(str(directory)).save(
    {'x': np.full(1_000, value)}, state, str(replay)
  )


def read_value(directory) -> int:
  """Returns the value of the newest checkpoint, after comparing all entries."""
  checkpoint = checkpointing.Checkpointer(str(directory)).load()
  value = checkpoint.state['counts']['learner_steps']
  assert np.all(checkpoint.arrays['x'] == value)
  items = pathlib.Path(checkpoint.replay_path, 'items').read_bytes()
  assert items == value.to_bytes(8, 'big') * 1_000
  return value


def make_shelf(place, folder='checkpoints') -> checkpoints.CheckpointStore:
  return checkpoints.CheckpointStore(place, folder, f'S/{folder}')


def add(store, local, value=1) -> checkpoints.CheckpointManifest:
  """Writes a checkpoint and uploads it."""
  path = write_checkpoint(local, value)
  return store.add(path, lambda: None, lambda count: None)


def damage(place, name, change):
  """Corrupts a file of the storage."""
  content = b''.join(place.read(name))
  place.remove(name)
  if (content := change(content)) is not None:
    place.write(name, [content])


def fetch(store: checkpoints.CheckpointStore, folder) -> int:
  """Fetches the newest checkpoint; returns its value."""
  manifest = store.newest()
  here = checkpointing.Checkpointer(str(folder))
  here.add(lambda f: store.fetch(manifest, f, lambda count: None))
  return read_value(folder)


class Killed(BaseException):
  """Raised in place of a call during which the process is killed."""


class DyingPlace(backends.StorageBackend):
  """Storage backend that simulates a kill at one of its write operations.

  Half of a file that is being written then is stored. All later calls fail,
  too, as a dead process repairs nothing.

  Attributes:
    calls: Name and target of each write operation.
  """

  def __init__(self, place: backends.StorageBackend, num_calls: int = 10**9):
    self._place = place
    self._num_calls = num_calls
    self.calls: list[tuple[str, str]] = []

  def names(self, folder):
    return self._place.names(folder)

  def files(self, folder):
    return self._place.files(folder)

  def size(self, name):
    return self._place.size(name)

  def read(self, name):
    return self._place.read(name)

  def write(self, name, chunks):
    content = b''.join(chunks)
    self._call('write', name, lambda: self._half(name, content))
    self._place.write(name, [content])

  def publish(self, name, content):
    half = name + '.0123' + backends.UNFINISHED
    self._call('publish', name, lambda: self._half(half, content))
    self._place.publish(name, content)

  def copy(self, name, target, count):
    self._call('copy', target, lambda: self._half(target, b'copied'))
    self._place.copy(name, target, count)

  def remove(self, name):
    self._call('remove', name, lambda: self._remove_some(name))
    self._place.remove(name)

  def _call(self, kind, name, die):
    if len(self.calls) >= self._num_calls:
      if len(self.calls) == self._num_calls:
        die()
      self.calls.append((kind, name))
      raise Killed
    self.calls.append((kind, name))

  def _half(self, name, content):
    self._place.write(name, [content[: len(content) // 2]])

  def _remove_some(self, name):
    if not name.endswith('.json') and (files := self._place.files(name)):
      self._place.remove(os.path.join(name, files[0]))
