"""Reader of recordings of this package."""

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import tree
from numpy.lib import npyio

from repertory.components import specs
from repertory.components.config import regular_files
from repertory.components.config.settings import text_of
from repertory.components.offline import data_set, manifest, writer
from repertory.components.runtime import nests

_STEP_TYPE = 'step_type'

# Errors that NumPy, zipfile and zlib raise for damaged files.
_DAMAGES = (
  OSError, ValueError, EOFError, KeyError, RuntimeError, struct.error,
  zipfile.BadZipFile, zlib.error,
)  # fmt: skip


class Recording(data_set.DataSet):
  """Recording written by `--record` or `repertory record`.

  Attributes:
    manifest: Agent and environment of the recording.
  """

  def __init__(self, path: str):
    """Opens the recording, and reads the lengths of all episodes.

    Raises:
      DataError: If there are no episodes, or a file is damaged.
    """
    self.path = path
    self.manifest = manifest.read(path)
    self._files = sorted(
      name
      for name in os.listdir(path)
      if name.endswith(writer.SUFFIX) and not name.startswith('.')
    )
    lengths = [
      data_set.episode_lengths(self._read(name, [])[0]) for name in self._files
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
    for _ in self.read(spec._replace(observations=())):
      pass  # Observations may be large: `read` checks them.

  def read(
    self, spec: specs.EnvironmentSpec
  ) -> Iterator[data_set.DataSetSteps]:
    columns = dict(manifest.columns_of(spec))
    observations = nests.paths_of(spec.observations, 'observation')
    actions = nests.paths_of(spec.actions, 'action')
    for file in self._files:
      step_type, *found = self._read(file, [*columns])
      path = os.path.join(self.path, file)
      values = {}
      for (name, one), column in zip(columns.items(), found):
        if name in ('reward', 'discount'):
          column = data_set.clear_first(column, step_type)
        values[name] = data_set.cast(path, name, column, one)
      data_set.check_discounts(path, values['discount'], step_type)
      for name in observations:
        data_set.check_numbers(path, name, values[name], columns[name])
      taken = data_set.are_actions(step_type)
      for name in actions:
        data_set.check_bounds(path, name, values[name], columns[name], taken)
      yield data_set.DataSetSteps(
        step_type,
        values['reward'],
        values['discount'],
        tree.unflatten_as(spec.observations, [values[n] for n in observations]),
        tree.unflatten_as(spec.actions, [values[n] for n in actions]),
      )

  def _read(self, name: str, columns: list[str]) -> list[np.ndarray]:
    """Reads step types and columns of a file, all of the same length."""
    path = os.path.join(self.path, name)
    try:
      with (
        regular_files.open_file(path) as opened,
        npyio.NpzFile(cast(Any, opened), allow_pickle=False) as file,
      ):
        # With the suffix, because NumPy might read 'x.npy' instead of 'x'.
        names = [f'{name}.npy' for name in (_STEP_TYPE, *columns)]
        missing = sorted(set(names) - set(file.zip.namelist()))
        if missing:
          raise ValueError(
            f'it has no column {missing[0].removesuffix(".npy")!r}'
          )
        found = [file[name] for name in names]
    except _DAMAGES as error:
      raise data_set.DataError(
        path, f'is damaged: {text_of(error)}.'
      ) from error
    step_type = data_set.check_step_type(path, found[0])
    lengths = {column.shape[:1] for column in found}
    if len(lengths) > 1:
      names = [str(*one) or 'a single number' for one in sorted(lengths)]
      raise data_set.DataError(
        path,
        'is damaged: its columns must have the same length; got '
        f'{", ".join(names)}.',
      )
    return [step_type, *found[1:]]


def _join(names) -> str:
  return ', '.join(sorted(names))
