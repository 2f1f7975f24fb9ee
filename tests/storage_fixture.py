"""Checkpoints that are quick to write, and places that fail when told to."""

import os
import pathlib

import numpy as np

from repertory.components import checkpointing, storage
from repertory.components.storage import fsspec_place, places


def make_place(kind: str, folder) -> places.Place:
  """Returns a place: of a path, of a URL of a disk, or of one in memory."""
  if kind == 'path':
    return places.LocalPlace(str(folder))
  return fsspec_place.FsspecPlace(f'{kind}://{folder}')


def write_checkpoint(
  directory, value: int, experiment=None, evaluation=None
) -> str:
  """Writes a checkpoint with replay, all of which tells a value."""
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
  """Returns what the newest checkpoint tells, all of which is compared."""
  checkpoint = checkpointing.Checkpointer(str(directory)).load()
  value = checkpoint.state['counts']['learner_steps']
  assert np.all(checkpoint.arrays['x'] == value)
  items = pathlib.Path(checkpoint.replay_path, 'items').read_bytes()
  assert items == value.to_bytes(8, 'big') * 1_000
  return value


def make_shelf(place, folder='checkpoints') -> storage.Shelf:
  return storage.Shelf(place, folder, f'S/{folder}')


def add(shelf, local, value=1) -> storage.Manifest:
  """Writes a checkpoint and stores it."""
  path = write_checkpoint(local, value)
  return shelf.add(path, lambda: None, lambda count: None)


def damage(place, name, change):
  """Changes a file of the storage, as a disk may."""
  content = b''.join(place.read(name))
  place.remove(name)
  if (content := change(content)) is not None:
    place.write(name, [content])


def fetch(shelf: storage.Shelf, folder) -> int:
  """Fetches the newest; returns what it tells."""
  manifest = shelf.newest()
  here = checkpointing.Checkpointer(str(folder))
  here.add(lambda f: shelf.fetch(manifest, f, lambda count: None))
  return read_value(folder)


class Killed(BaseException):
  """What comes in place of a call during which the process is killed."""


class DyingPlace(places.Place):
  """Lets a process be killed at one of its calls that change something.

  Of a file that is being written then, half is there. All later calls fail as
  well: a process that is dead repairs nothing.

  Attributes:
    calls: Name and target of what was changed.
  """

  def __init__(self, place: places.Place, num_calls: int = 10**9):
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
    half = name + '.0123' + places.UNFINISHED
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
