"""Reader of Minari data sets: https://minari.farama.org.

A folder `data` has `main_data.hdf5` with a group per episode, `episode_<i>`. It
holds 'observations' of T + 1 time steps, and 'actions', 'rewards',
'terminations' and 'truncations' of T steps. A dictionary is a group with its
keys, a tuple one with `_index_<i>`. In newer versions `metadata.json` next to
it describes the spaces.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import dm_env
import numpy as np
import tree

from repertory.components import specs, types
from repertory.components.config import regular_files
from repertory.components.offline import data_set

FILE = 'main_data.hdf5'

_METADATA = 'metadata.json'
_HDF5 = 'hdf5'

_FIRST, _MID, _LAST = (int(one) for one in dm_env.StepType)


def find_file(path: str, name: str = FILE) -> str | None:
  """Returns a file of a data set or its `data`; None without one."""
  for folder in (path, os.path.join(path, 'data')):
    file = os.path.join(folder, name)
    if os.path.isfile(file):
      return file
  return None


def check_format(path: str) -> None:
  """Raises a DataError if a data set's format is not HDF5."""
  found = _read_metadata(path).get('data_format', _HDF5)
  if found != _HDF5:
    raise data_set.DataError(
      path,
      f"must be in HDF5, which Minari writes with data_format='{_HDF5}'; got "
      f'{found!r}.',
    )


def _read_metadata(path: str) -> Mapping[str, Any]:
  """Returns the metadata of a data set, empty without them."""
  path = find_file(path, _METADATA) or ''
  if not path:
    return {}
  try:
    with regular_files.open_file(path) as file:
      found = json.load(file)
    if not isinstance(found, dict):
      raise ValueError(f'it must be a JSON object; got {found!r}')
    return found
  except (OSError, ValueError) as error:
    raise data_set.DataError(
      path, f'cannot be read ({type(error).__name__}: {error}).'
    ) from error


class MinariData(data_set.DataSet):
  """Minari data set in a local folder, in HDF5."""

  def __init__(self, path: str, file: str):
    """Reads the lengths of all episodes from a file of the folder `path`."""
    self.path = path
    self._file = file
    with self._open() as opened:
      names = [name for name in opened if re.fullmatch(r'episode_\d+', name)]
      self._groups = sorted(names, key=lambda name: int(name.split('_')[1]))
      self.lengths = np.array(
        [opened[f'{name}/rewards'].shape[0] for name in self._groups], int
      )
    if not self.lengths.sum():
      raise data_set.DataError(path, 'is empty: it has no steps.')

  def check(self, spec: specs.EnvironmentSpec) -> None:
    self._check_metadata()
    nests = {
      'observations': spec.observations,
      'actions': spec.actions,
      'rewards': spec.rewards,
    }
    expected = {
      name: leaf
      for root, nest in nests.items()
      for name, leaf in _leaves(nest, root)
    }
    with self._open() as opened:
      group = opened[self._groups[0]]
      found = {
        name: (group[name].shape[1:], group[name].dtype)
        for root in nests
        if root in group
        for name in _names(group, root)
      }
    data_set.check_columns(self.path, found, expected)

  def read(self, spec):
    with self._open() as opened:
      for name in self._groups:
        yield _read_episode(opened[name], f'{self.path}, {name},', spec)

  def _check_metadata(self) -> None:
    """Raises an error for missing episodes, or unsupported spaces."""
    metadata = _read_metadata(self.path)
    for name, count in (
      ('total_episodes', len(self.lengths)),
      ('total_steps', self.lengths.sum()),
    ):
      if metadata.get(name, count) != count:
        raise data_set.DataError(
          self.path, f'must have {name} = {count}, got {metadata[name]}.'
        )
    for name in ('observation_space', 'action_space'):  # Ours start at 0.
      start = re.search(r'"start": *(-?[1-9]\d*)', str(metadata.get(name, '')))
      if start:
        raise data_set.DataError(
          self.path,
          f'must have a {name} whose numbers start at 0; got {start[1]}.',
        )

  @contextlib.contextmanager
  def _open(self) -> Iterator[Any]:
    """Opens the file; converts errors of its readers to `DataError`."""
    # h5py comes with TensorFlow; reading other data does not need it.
    import h5py  # noqa: PLC0415

    try:
      with h5py.File(self._file, 'r') as opened:
        yield opened
    except data_set.DataError:
      raise
    except Exception as error:  # Broken bytes may raise anything.
      raise data_set.DataError(
        self.path,
        f'is damaged: {self._file}: {type(error).__name__}: {error}.',
      ) from error


def _read_episode(
  group: Any, where: str, spec: specs.EnvironmentSpec
) -> data_set.DataSetSteps:
  """Returns the time steps of an episode."""
  num_steps = len(group['rewards'])

  def load(name: str, count: int = num_steps) -> np.ndarray:
    column = group[name]
    if len(column) != count:  # Before a wrong length is allocated.
      raise data_set.DataError(
        where,
        f"is damaged: '{name}' must have {count} rows; got {len(column)}.",
      )
    return column[()]

  ends = load('terminations')
  _check_ends(where, 'terminations', ends)
  if 'truncations' in group:
    _check_ends(where, 'truncations', load('truncations'))
  step_type = np.full([num_steps + 1], _MID, np.int32)
  step_type[0], step_type[-1] = _FIRST, _LAST
  discount = np.ones([num_steps + 1], spec.discounts.dtype)
  discount[1:] -= ends.astype(discount.dtype)
  rewards = load('rewards')
  columns = {
    'rewards': np.append(np.zeros_like(rewards[:1]), rewards, axis=0),
    'discounts': discount,
  }
  for name, _ in _leaves(spec.observations, 'observations'):
    columns[name] = load(name, num_steps + 1)
  for name, _ in _leaves(spec.actions, 'actions'):
    # The action at LAST is undefined, because none was taken.
    actions = load(name)
    columns[name] = np.append(actions, np.zeros_like(actions[:1]), axis=0)
  return data_set.convert(where, spec, step_type, columns)


def _check_ends(where: str, name: str, values: np.ndarray) -> None:
  """Raises a DataError unless `values` are booleans that end an episode."""
  if values.ndim != 1 or not np.isin(values, (0, 1)).all():
    got = f'{values.dtype} of shape {values.shape}, such as {values[-1]}'
    raise data_set.DataError(
      where, f"must have '{name}' of booleans, one per step; got {got}."
    )
  if values[:-1].any():
    raise data_set.DataError(
      where,
      f"is damaged: '{name}' must be false before the last step; got step "
      f'{values.argmax() + 1} of {len(values)}.',
    )


def _leaves(nest: types.Nest, root: str) -> Iterator[tuple[str, specs.Array]]:
  """Yields the paths of leaves in an episode's group, and their specs."""
  for path, one in tree.flatten_with_path(nest):
    parts = [f'_index_{p}' if isinstance(p, int) else str(p) for p in path]
    yield '/'.join([root, *parts]), one


def _names(group: Any, root: str) -> list[str]:
  """Returns the paths of all leaves below a path of a group."""
  if hasattr(group[root], 'dtype'):
    return [root]
  return [leaf for x in group[root] for leaf in _names(group, f'{root}/{x}')]
