"""Small checkpoints, and storage folders that fail on demand."""

import pathlib

import numpy as np

from repertory.components import checkpoints
from repertory.components.checkpoints import checkpointing, storage


def write_checkpoint(directory, value: int, evaluation=None) -> str:
  """Writes a checkpoint with replay, whose entries all hold one value."""
  replay = pathlib.Path(directory) / '.replay' / f'1-{value}'
  replay.mkdir(parents=True, exist_ok=True)
  (replay / 'items').write_bytes(value.to_bytes(8, 'big') * 1_000)
  state = {
    'counts': {'steps': 10 * value, 'learner_steps': value},
    'experiment': {'agent': 'a'},
  }
  if evaluation is not None:
    state['evaluation'] = {'episode_return': evaluation, 'steps': value}
  return checkpointing.Checkpointer(str(directory)).save(
    {'x': np.full(1_000, value)}, state, str(replay)
  )


def make_store(folder, name='checkpoints') -> checkpoints.CheckpointStore:
  return checkpoints.CheckpointStore(folder, name, 'S')


def open_store(path, name='checkpoints') -> checkpoints.CheckpointStore:
  return make_store(checkpoints.StorageFolder(str(path)), name)


def add(store, local, value=1) -> checkpoints.CheckpointManifest:
  """Writes a checkpoint and uploads it."""
  path = write_checkpoint(local, value)
  return store.add(path, lambda: None)


def flip(content):
  """Returns content with one bit changed."""
  return content[:-1] + bytes([content[-1] ^ 1])


def damage(folder, name, change):
  """Corrupts a file of the storage."""
  content = change(folder.read(name))
  folder.remove(name)
  if content is not None:
    folder.publish(name, content)


def fetch(store: checkpoints.CheckpointStore, folder) -> int:
  """Fetches the newest checkpoint; returns its value, after a comparison."""
  manifest = store.newest()
  here = checkpointing.Checkpointer(str(folder))
  here.add(lambda f: store.fetch(manifest, f))
  checkpoint = here.load()
  value = checkpoint.state['counts']['learner_steps']
  assert np.all(checkpoint.arrays['x'] == value)
  items = pathlib.Path(checkpoint.replay_path, 'items').read_bytes()
  assert items == value.to_bytes(8, 'big') * 1_000
  return value


class Killed(BaseException):
  """Raised in place of a call during which the process is killed."""


class DyingFolder:
  """Folder of a storage that simulates a kill at one of its write operations.

  Half of a file that is being written then is stored. All later calls fail,
  too, as a dead process repairs nothing.
  """

  def __init__(self, folder: storage.StorageFolder, num_calls: int = 10**9):
    self._folder = folder
    self._num_calls = num_calls
    self.calls: list[tuple[str, str]] = []
    self.names, self.read = folder.names, folder.read
    self.download, self.sync = folder.download, folder.sync

  def upload(self, path, name):
    content = pathlib.Path(path).read_bytes()
    self._call('upload', name, lambda: self._half(name, content))
    self._folder.upload(path, name)

  def publish(self, name, content):
    half = name + '.0123' + storage.UNFINISHED
    self._call('publish', name, lambda: self._half(half, content))
    self._folder.publish(name, content)

  def remove(self, name):
    self._call('remove', name, lambda: None)
    self._folder.remove(name)

  def _call(self, kind, name, die):
    if len(self.calls) >= self._num_calls:
      if len(self.calls) == self._num_calls:
        die()
      self.calls.append((kind, name))
      raise Killed
    self.calls.append((kind, name))

  def _half(self, name, content):
    self._folder.publish(name, content[: len(content) // 2])
