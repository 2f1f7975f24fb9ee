"""Reads recordings of this package."""

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator

import numpy as np
import tree

from repertory.components import nests, regular_files, specs
from repertory.components.recordings import data_set, manifest, writer

_STEP_TYPE = 'step_type'

# What a damaged file raises, of NumPy, zipfile and zlib.
_DAMAGES = (
  OSError, ValueError, EOFError, KeyError, RuntimeError, struct.error,
  zipfile.BadZipFile, zlib.error,
)  # fmt: skip


class Recording(data_set.DataSet):
  """What `--record` and `repertory record` write.

  Attributes:
    manifest: Who acted, in what.
  """

  def __init__(self, path: str):
    """Looks at all files, and reads of them how long episodes are.

    Raises:
      DataError: If there are none, or one is damaged.
    """
    self.path = path
    self.manifest = manifest.read(path)
    self._files = sorted(
      name
      for name in os.listdir(path)
      if name.endswith(writer.SUFFIX) and not name.startswith('.')
    )
    lengths = [
      data_set.episode_lengths(self._read(name, [_STEP_TYPE])[0])
      for name in self._files
    ]
    self.lengths = np.concatenate(lengths) if lengths else np.zeros([0], int)
    if not self.lengths.sum():
      raise data_set.DataError(path, 'is empty: it has no steps.')

  def check(self, spec: specs.EnvironmentSpec) -> None:
    found, columns = self.manifest.spec, dict(manifest.columns_of(spec))
    if found.keys() != columns.keys():
      raise data_set.DataError(
        self.path,
        f'has other columns than the environment, which has {_join(columns)}; '
        f'got {_join(found)}, of {self.manifest.environment}.',
      )
    for name, one in columns.items():
      shape, dtype = found[name]['shape'], np.dtype(found[name]['dtype'])
      data_set.check_kind(self.path, name, tuple(shape), dtype, one)
    actions = nests.paths_of(spec.actions, 'action')
    for file in self._files:
      step_type, *leaves = self._read(file, [_STEP_TYPE, *actions])
      data_set.check_actions(
        os.path.join(self.path, file), leaves, tree.flatten(spec.actions),
        step_type,
      )  # fmt: skip

  def read(self, spec: specs.EnvironmentSpec) -> Iterator[data_set.Steps]:
    columns = dict(manifest.columns_of(spec))
    num_observations = len(tree.flatten(spec.observations))
    for file in self._files:
      step_type, *found = self._read(file, [_STEP_TYPE, *columns])
      path = os.path.join(self.path, file)
      reward, discount, *leaves = [
        data_set.cast(path, name, column, one)
        for (name, one), column in zip(columns.items(), found)
      ]
      yield data_set.Steps(
        step_type,
        reward,
        discount,
        tree.unflatten_as(spec.observations, leaves[:num_observations]),
        tree.unflatten_as(spec.actions, leaves[num_observations:]),
      )

  def _read(self, name: str, columns: list[str]) -> list[np.ndarray]:
    """Reads columns of a file, all as long as the first."""
    path = os.path.join(self.path, name)
    try:
      with regular_files.open_file(path) as opened, np.load(opened) as file:
        # With the suffix: else 'x.npy' might be that of 'x'.
        found = [file[f'{column}.npy'] for column in columns]
    except _DAMAGES as error:
      raise data_set.DataError(
        path, f'is damaged ({type(error).__name__}: {error}).'
      ) from error
    lengths = {len(column) for column in found}
    if len(lengths) > 1:
      raise data_set.DataError(
        path,
        'is damaged: its columns must be of one length; got '
        f'{", ".join(map(str, sorted(lengths)))}.',
      )
    return found


def _join(names) -> str:
  return ', '.join(sorted(names))
