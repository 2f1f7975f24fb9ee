"""Snapshots of a local table as files.

A snapshot is a folder; those of further tables are folders in it. `table.json`
holds the table's description, its counts and the state of its random generator;
it is written last. Items are in insertion order: `priorities.npy`, a file
`leaf_<i>.npy` for each small leaf with index i, and a file `which_<i>.npy` with
array indices for each large leaf, or, if it is a frame stack, rows with those
of frames: equal ones are of a whole stack. The arrays themselves are in
`arrays_<n>.npy`, as bytes without duplicates, one file per shape and dtype, and
their sizes in `sizes_<n>.npy`: those that are smaller than the array are
compressed, see `stored_arrays`. Without sizes, an older version has written
them as arrays. `actors` is there if the actors' state was saved; its format is
theirs, perhaps pickles. No other file contains pickles. `checkpointing` adds
and verifies checksums when it copies snapshots into its checkpoints.
"""

import contextlib
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tree

from repertory.components.checkpoints import checkpointing
from repertory.components.replay import tables
from repertory.components.replay.local import stored_arrays
from repertory.components.replay.local import table as table_lib

# Version of the layout, and those that are read.
_FORMAT, _READABLE = 3, (1, 2, 3)
_STATE, _TEMPORARY, _NAME = 'table.json', '.writing', 'snapshot'
_ACTORS = 'actors'
# Fields of `table.Contents` with plain values.
COUNTS = ('inserts', 'samples', 'random')


def write(
  directory: str,
  contents: Sequence[tuple[tables.TableSpec, table_lib.Contents]],
) -> str:
  """Writes a snapshot of tables.

  When complete, it replaces the directory's previous one. Returns its folder.
  """
  with replacing(directory) as (folder, path):
    (table, first), *others = contents
    for other, its_contents in others:
      os.mkdir(os.path.join(folder, other.name))
      _write(os.path.join(folder, other.name), other, its_contents)
    _write(folder, table, first)
  return path


def _write(
  folder: str, table: tables.TableSpec, contents: table_lib.Contents
) -> None:
  layout, leaves = table.packing, contents.items.leaves
  _save(folder, 'priorities', contents.items.priorities)
  for i in layout.packed:
    _save(folder, f'leaf_{i}', leaves[i])
  for n, indices in enumerate(_by_kind(table)):
    _save_large(folder, n, {i: leaves[i] for i in indices}, layout)
  if contents.actors:
    with open(os.path.join(folder, _ACTORS), 'wb') as file:
      file.write(contents.actors)
  state = {
    'format': _FORMAT,
    'table': _describe(table),
    **{name: getattr(contents, name) for name in COUNTS},
  }
  with open(os.path.join(folder, _STATE), 'w') as file:
    json.dump(state, file, indent=2)


def read(
  directory: str, table: tables.TableSpec, *, compressed: bool = False
) -> table_lib.Contents | None:
  """Reads a table from the snapshot in a directory; returns None without one.

  The snapshot may have any name. Images are compressed if `compressed`. Raises
  a CheckpointError if the files are not a snapshot, or of another table.
  """
  folder = find(directory)
  if folder is None:
    return None
  if os.path.isdir(own := os.path.join(folder, table.name)):
    folder = own
  layout = table.packing
  with reading(folder):
    with open(os.path.join(folder, _STATE)) as file:
      state = json.load(file)
    _check(folder, state, table)
    leaves = {i: _load(folder, f'leaf_{i}') for i in layout.packed}
    for n, indices in enumerate(_by_kind(table)):
      which = {i: _load(folder, f'which_{i}') for i in indices}
      arrays = _load_large(folder, n, which, layout, compressed)
      for i in indices:
        leaves[i] = arrays[which[i]]
        if leaves[i].ndim == 2:
          leaves[i] = stored_arrays.as_objects(
            row[0] if row[0] is row[1] else stored_arrays.Stack(row)
            for row in leaves[i]
          )
    actors_path, actors = os.path.join(folder, _ACTORS), b''
    if os.path.exists(actors_path):
      with open(actors_path, 'rb') as file:
        actors = file.read()
    ordered = [leaves[i] for i in range(len(leaves))]
    return table_lib.Contents(
      table_lib.Items(ordered, _load(folder, 'priorities')),
      actors=actors,
      **{name: state[name] for name in COUNTS},
    )


@contextlib.contextmanager
def reading(what: str, advice: str = '') -> Iterator[None]:
  """Converts every error to a CheckpointError about `what` the block reads."""
  try:
    yield
  except checkpointing.CheckpointError:
    raise
  except Exception as error:  # Broken bytes may raise anything.
    raise checkpointing.CheckpointError(
      f'{what} cannot be read: {type(error).__name__}: {error}{advice}',
      fresh=True,
    ) from error


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
  if state['format'] not in _READABLE:
    raise checkpointing.CheckpointError(
      f'{folder} cannot be read: it has format {state["format"]}, this version '
      f'reads formats {" and ".join(map(str, _READABLE))}.'
    )
  found = state['table']
  differences = [
    f'{name}: {found.get(name, "nothing")} there, {value} now'
    for name, value in _describe(table).items()
    if found.get(name) != value
  ]
  if differences:
    raise checkpointing.CheckpointError(
      f'{folder} belongs to another table: {"; ".join(differences)}.'
    )


def _describe(table: tables.TableSpec) -> dict[str, Any]:
  """Returns the properties that must match when a snapshot is read."""
  return {
    'name': table.name,
    'signature': [
      ['/'.join(map(str, path)), spec.dtype.name, [int(n) for n in spec.shape]]
      for path, spec in tree.flatten_with_path(table.signature)
    ],
    'max_size': table.max_size,
    'sampler': table.sampler,
    'max_times_sampled': int(table.is_queue),
  }


def _by_kind(table: tables.TableSpec) -> list[list[int]]:
  """Groups large leaves by shape and dtype; those of a group share arrays."""
  layout = table.packing
  kinds: dict[tuple, list[int]] = {}
  for i in layout.whole:
    kind = layout.shapes[i], layout.dtypes[i], layout.stacks.get(i, 1)
    kinds.setdefault(kind, []).append(i)
  return list(kinds.values())


def _save_large(
  folder: str, number: int, columns: dict[int, np.ndarray], layout: Any
) -> None:
  """Saves large leaves of one shape and dtype, array by array."""
  places: dict[int, int] = {}
  arrays = []

  def place(array: Any) -> int:
    index = places.setdefault(id(array), len(arrays))
    if index == len(arrays):
      arrays.append(array)
    return index

  for index, column in columns.items():
    number_of_frames = layout.stacks.get(index, 1)
    rows = [stored_arrays.frames_of(one, number_of_frames) for one in column]
    which = np.array([list(map(place, row)) for row in rows], np.int64)
    which = which.reshape(len(rows), number_of_frames)
    _save(
      folder, f'which_{index}', which if index in layout.stacks else which[:, 0]
    )
  sizes = np.array(
    [len(stored_arrays.stored_bytes(array)) for array in arrays], np.int64
  )
  _save(folder, f'sizes_{number}', sizes)
  size = int(sizes.sum())
  header = {'descr': '|u1', 'fortran_order': False, 'shape': (size,)}
  with open(os.path.join(folder, f'arrays_{number}.npy'), 'wb') as file:
    np.lib.format.write_array_header_2_0(file, header)
    for array in arrays:
      file.write(stored_arrays.stored_bytes(array))


def _load_large(
  folder: str,
  number: int,
  which: Mapping[int, np.ndarray],
  layout: Any,
  compressed: bool,
) -> np.ndarray:
  """Loads the arrays of one shape and dtype, as objects.

  They are separate, so that each is freed with the last item that has it.
  `which` are their indices by leaf, `[N]` or `[N, T]`.
  """
  index, rows = next(iter(which.items()))
  shape, dtype = layout.shapes[index], layout.dtypes[index]
  frames, frame_shape = set(), shape
  if rows.ndim == 2:
    frame_shape = (*shape[:-1], shape[-1] // rows.shape[1])
    for rows in which.values():
      frames.update(rows[rows[:, 0] != rows[:, 1]].ravel().tolist())
  data = _load(folder, f'arrays_{number}', mmap_mode='r')
  if os.path.exists(os.path.join(folder, f'sizes_{number}.npy')):
    ends = _load(folder, f'sizes_{number}').cumsum().tolist()
  else:  # Of format 1.
    size = math.prod(shape) * dtype.itemsize
    data = data.reshape(-1).view(np.uint8)
    ends = range(size, len(data) + 1, size)
  arrays = np.empty([len(ends)], object)
  for k, (begin, end) in enumerate(zip([0, *ends], ends)):
    stored = np.array(data[begin:end]).data
    its_shape = frame_shape if k in frames else shape
    array = stored_arrays.from_stored(stored, its_shape, dtype)
    if compressed and index in layout.images:
      array = stored_arrays.compress(np.asarray(array))
    elif not compressed:
      array = np.asarray(array)
    arrays[k] = array
  return arrays


def _save(folder: str, name: str, array: np.ndarray) -> None:
  np.save(os.path.join(folder, f'{name}.npy'), array, allow_pickle=False)


def _load(folder: str, name: str, mmap_mode: Any = None) -> np.ndarray:
  path = os.path.join(folder, f'{name}.npy')
  return np.load(path, mmap_mode, allow_pickle=False)
