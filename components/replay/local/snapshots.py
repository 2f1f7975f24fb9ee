"""Snapshots of a local table as files.

A snapshot is a folder. `table.json` holds the table's description, its counts
and the state of its random generator; it is written last. Items are in
insertion order: `priorities.npy`, a file `leaf_<i>.npy` for each small leaf
with index i, and a file `which_<i>.npy` with array indices for each large leaf.
The arrays themselves are in `arrays_<n>.npy`, without duplicates, one file per
shape and dtype. `actors` is there if the actors' state was saved; its format is
theirs, perhaps pickles. No other file contains pickles. Further tables of the
same point in time are in subfolders with their names. `checkpointing` adds and
verifies checksums when it copies snapshots into its checkpoints.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tree

from repertory.components.checkpoints import checkpointing
from repertory.components.replay import tables
from repertory.components.replay.local import table as table_lib

# Version of the layout; readers reject others.
_FORMAT = 1
_STATE, _TEMPORARY, _NAME = 'table.json', '.writing', 'snapshot'
_ACTORS = 'actors'


def write(
  directory: str,
  table: tables.TableSpec,
  contents: table_lib.Contents,
  others: Sequence[tuple[tables.TableSpec, table_lib.Contents]] = (),
) -> str:
  """Writes a snapshot of a table, and of others with it.

  Args:
    directory: Parent directory. The snapshot has a temporary name until it is
      complete, then it replaces the previous one.
    table: Description of the table.
    contents: Result of `Table.copy`.
    others: Further tables with their contents, each for a subfolder.

  Returns:
    The snapshot's folder.

  Raises:
    OSError: If writing fails.
  """
  with replacing(directory) as (folder, path):
    _write(folder, table, contents)
    for other, its_contents in others:
      part = os.path.join(folder, other.name)
      os.makedirs(part)
      _write(part, other, its_contents)
  return path


def _write(
  folder: str, table: tables.TableSpec, contents: table_lib.Contents
) -> None:
  packing = table.packing
  num_small = len(packing.packed)
  _save(folder, 'priorities', contents.priorities)
  for i, leaf in zip(packing.packed, contents.leaves):
    _save(folder, f'leaf_{i}', leaf)
  for n, leaves in enumerate(_by_kind(table)):
    columns = [contents.leaves[num_small + k] for k in leaves]
    indices = [packing.whole[k] for k in leaves]
    _save_large(folder, n, indices, columns, packing)
  state = {
    'format': _FORMAT,
    'table': _describe(table),
    'inserts': contents.inserts,
    'samples': contents.samples,
    'times_sampled': contents.times_sampled,
    'random': contents.random,
  }
  if contents.actors:
    with open(os.path.join(folder, _ACTORS), 'wb') as file:
      file.write(contents.actors)
  with open(os.path.join(folder, _STATE), 'w') as file:
    json.dump(state, file, indent=2)


def read(
  directory: str, table: tables.TableSpec, part: str = ''
) -> table_lib.Contents | None:
  """Reads the snapshot in a directory; returns None without one.

  Args:
    directory: Parent directory of a snapshot with any name.
    table: Description of the table to restore.
    part: Subfolder of a further table; '' for the first one.

  Raises:
    CheckpointError: If the files are not a snapshot, or of another table.
  """
  folder = find(directory)
  if folder is None:
    return None
  folder = os.path.join(folder, part) if part else folder
  state_path = os.path.join(folder, _STATE)
  if not os.path.exists(state_path):
    raise checkpointing.CheckpointError(
      f'{folder} cannot be read: it is not a snapshot of a table.'
    )
  with reading(folder):
    return _read(folder, table)


@contextlib.contextmanager
def reading(what: str) -> Iterator[None]:
  """Converts every error of damaged contents to a CheckpointError.

  Args:
    what: Name of the contents that the block reads, for the message.

  Raises:
    CheckpointError: If the block raises any error.
  """
  try:
    yield
  except checkpointing.CheckpointError:
    raise
  except Exception as error:  # Broken bytes may raise anything.
    raise checkpointing.CheckpointError(
      f'{what} cannot be read: {type(error).__name__}: {error}', fresh=True
    ) from error


def _read(folder: str, table: tables.TableSpec) -> table_lib.Contents:
  """Reads and validates the files of a snapshot.

  Raises:
    CheckpointError: If it belongs to another table.
    Exception: Any, if a file is damaged.
  """
  with open(os.path.join(folder, _STATE)) as file:
    state = json.load(file)
  _check(folder, state, table)
  packing = table.packing
  priorities = _load(folder, 'priorities')
  size = len(priorities)
  _expect('priorities', priorities, (size,), np.dtype(float))
  check_priorities(priorities)
  counts = [state[name] for name in ('inserts', 'samples', 'times_sampled')]
  if not all(isinstance(one, int) for one in counts) or min(counts) < 0:
    raise ValueError(f'counts must be integers of at least 0, got {counts}.')
  if not size <= min(counts[0], table.max_size):
    raise ValueError(
      f'number of items must be at most {table.max_size}, and at most the '
      f'{counts[0]} inserts, got {size}.'
    )
  leaves: dict[int, np.ndarray] = {}
  for i in packing.packed:
    leaves[i] = _load(folder, f'leaf_{i}')
    shape = (size, *packing.shapes[i])
    _expect(f'leaf_{i}', leaves[i], shape, packing.dtypes[i])
  for n, columns in enumerate(_by_kind(table)):
    first = packing.whole[columns[0]]
    arrays = _load_each(folder, n, packing.shapes[first], packing.dtypes[first])
    for k in columns:
      i = packing.whole[k]
      which = _load(folder, f'which_{i}')
      _expect(f'which_{i}', which, (size,), np.dtype(np.int64))
      if (which < 0).any():
        raise ValueError(f'which_{i} must be at least 0, got {which.min()}.')
      leaves[i] = arrays[which]
  actors_path, actors = os.path.join(folder, _ACTORS), b''
  if os.path.exists(actors_path):
    with open(actors_path, 'rb') as file:
      actors = file.read()
  return table_lib.Contents(
    leaves=[leaves[i] for i in (*packing.packed, *packing.whole)],
    priorities=priorities,
    inserts=state['inserts'],
    samples=state['samples'],
    times_sampled=state['times_sampled'],
    random=state['random'],
    actors=actors,
  )


def check_priorities(priorities: np.ndarray) -> None:
  """Raises ValueError unless all are finite and at least 0."""
  is_bad = ~((priorities >= 0) & np.isfinite(priorities))
  if is_bad.any():
    raise ValueError(
      f'priorities must be finite and at least 0, got {priorities[is_bad][0]}.'
    )


def _expect(
  name: str, array: np.ndarray, shape: Sequence[int], dtype: np.dtype
) -> None:
  """Raises ValueError unless an array has the given shape and dtype."""
  if array.shape != tuple(shape) or array.dtype != dtype:
    raise ValueError(
      f'{name} must be of {dtype} and shape {tuple(shape)}, got {array.dtype} '
      f'and shape {array.shape}.'
    )


@contextlib.contextmanager
def replacing(directory: str) -> Iterator[tuple[str, str]]:
  """Yields a temporary folder, and its final path after the block.

  The folder replaces the previous snapshot.
  """
  folder = os.path.join(directory, _TEMPORARY)
  shutil.rmtree(folder, ignore_errors=True)
  os.makedirs(folder)
  path = os.path.join(directory, _NAME)
  yield folder, path
  shutil.rmtree(path, ignore_errors=True)
  os.rename(folder, path)


def find(directory: str) -> str | None:
  """Returns the folder of a snapshot, of any name; None without one."""
  names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
  folders = [os.path.join(directory, n) for n in names if n != _TEMPORARY]
  return folders[-1] if folders else None


def _check(folder: str, state: dict[str, Any], table: tables.TableSpec) -> None:
  """Raises an error if a snapshot does not fit the table."""
  if state['format'] != _FORMAT:
    raise checkpointing.CheckpointError(
      f'{folder} cannot be read: it has format {state["format"]}, this version '
      f'reads format {_FORMAT}.'
    )
  found, expected = state['table'], _describe(table)
  differences = [
    f'{name}: {found.get(name, "nothing")} there, {value} now'
    for name, value in expected.items()
    if found.get(name) != value
  ]
  if differences:
    raise checkpointing.CheckpointError(
      f'{folder} belongs to another table: {"; ".join(differences)}.'
    )


def _describe(table: tables.TableSpec) -> dict[str, Any]:
  """Returns the properties that must match when a snapshot is read."""
  paths = tree.flatten_with_path(table.signature)
  return {
    'name': table.name,
    'signature': [
      [
        '/'.join(map(str, path)),
        spec.dtype.name,
        [int(size) for size in spec.shape],
      ]
      for path, spec in paths
    ],
    'max_size': table.max_size,
    'sampler': table.sampler,
    'max_times_sampled': table.max_times_sampled,
  }


def _by_kind(table: tables.TableSpec) -> list[list[int]]:
  """Groups the indices of large leaves by shape and dtype.

  Leaves of one group may share arrays.
  """
  packing = table.packing
  kinds: dict[tuple, list[int]] = {}
  for k, i in enumerate(packing.whole):
    kinds.setdefault((packing.shapes[i], packing.dtypes[i]), []).append(k)
  return list(kinds.values())


def _save_large(
  folder: str,
  number: int,
  indices: Sequence[int],
  columns: Sequence[np.ndarray],
  packing: Any,
) -> None:
  """Saves large leaves of one shape and dtype, array by array."""
  places: dict[int, int] = {}
  arrays = []
  for index, column in zip(indices, columns):
    which = np.empty([len(column)], np.int64)
    for k, array in enumerate(column):
      place = places.setdefault(id(array), len(arrays))
      if place == len(arrays):
        arrays.append(array)
      which[k] = place
    _save(folder, f'which_{index}', which)
  shape, dtype = packing.shapes[indices[0]], packing.dtypes[indices[0]]
  header = {
    'descr': np.lib.format.dtype_to_descr(dtype),
    'fortran_order': False,
    'shape': (len(arrays), *shape),
  }
  with open(_path(folder, f'arrays_{number}'), 'wb') as file:
    np.lib.format.write_array_header_2_0(file, header)
    for array in arrays:
      file.write(np.ascontiguousarray(array).data)


def _load_each(
  folder: str, number: int, shape: Sequence[int], dtype: np.dtype
) -> np.ndarray:
  """Returns the large arrays of one shape and dtype as objects `[N]`."""
  name = f'arrays_{number}'
  mapped = np.load(_path(folder, name), mmap_mode='r', allow_pickle=False)
  _expect(name, mapped, (len(mapped), *shape), dtype)
  arrays = np.empty([len(mapped)], object)
  for k in range(len(mapped)):
    arrays[k] = np.array(mapped[k])
  return arrays


def _save(folder: str, name: str, array: np.ndarray) -> None:
  np.save(_path(folder, name), array, allow_pickle=False)


def _load(folder: str, name: str) -> np.ndarray:
  return np.load(_path(folder, name), allow_pickle=False)


def _path(folder: str, name: str) -> str:
  return os.path.join(folder, f'{name}.npy')
