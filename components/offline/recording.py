"""Recordings of this package: their manifests and their reader.

A recording is a folder with `manifest.json` and files of steps.
"""

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import tree
from numpy.lib import npyio

from repertory.components import specs
from repertory.components.config import regular_files
from repertory.components.config.settings import SettingError, text_of
from repertory.components.offline import data_set, minari, writer
from repertory.components.runtime import nests

FILE = 'manifest.json'

# Version of the layout; readers reject others.
_FORMAT = 1

_STEP_TYPE = 'step_type'


@dataclasses.dataclass(frozen=True)
class RecordingManifest:
  """Description of a recording.

  Attributes:
    agent: Name of the acting agent.
    environment: Name of the environment.
    spec: Specs of observations, actions, rewards and discounts by column:
      'shape', 'dtype', and 'minimum' and 'maximum' if there are bounds.
    version: Version of this package.
  """

  agent: str
  environment: str
  spec: dict[str, dict[str, Any]]
  version: str = ''

  @classmethod
  def of(
    cls, agent: str, environment: str, spec: specs.EnvironmentSpec, version: str
  ) -> 'RecordingManifest':
    """Creates the manifest for an agent in an environment."""
    columns = {name: specs.describe(one) for name, one in columns_of(spec)}
    return cls(agent, environment, columns, version)


def prepare(
  directory: str,
  manifest: RecordingManifest,
  writes: bool = True,
  setting: str = 'record',
) -> None:
  """Creates the folder of a recording, or validates an existing one.

  If not `writes`, it only validates. `setting` is named in errors.

  Raises:
    SettingError: If the folder holds other data or is not writable; nothing was
      written then.
  """
  is_new = not os.path.lexists(directory)
  if not is_new and not os.path.isdir(directory):
    raise SettingError(
      setting, f'must be a folder, or a new one; {directory} is a file.'
    )
  # Hidden files may belong to a run that creates the folder or writes there.
  names = [] if is_new else os.listdir(directory)
  names = [name for name in names if not name.startswith('.')]
  if FILE in names:
    found = read_manifest(directory)
    for name in ('agent', 'environment', 'spec'):
      here, there = getattr(manifest, name), getattr(found, name)
      if here != there:
        raise SettingError(
          setting,
          f'must be a new folder, or one of recordings with the same manifest; '
          f'in {directory}, {name} is {there!r} there, and {here!r} here. Name '
          'another folder: data may be read from several.',
        )
  elif names:
    raise SettingError(
      setting,
      f'must be a folder of recordings, or a new one; {directory} has other '
      f'files, such as {min(names)}.',
    )
  elif writes:
    try:
      os.makedirs(directory, exist_ok=True)
      _write(directory, manifest)
    except OSError as error:
      if is_new:
        with contextlib.suppress(OSError):
          os.rmdir(directory)
      raise SettingError(
        setting,
        f'must be writable, got {directory}: {error.strerror} '
        f'({error.filename or FILE}).',
      ) from error


def read_manifest(directory: str) -> RecordingManifest:
  """Reads the manifest of a recording, or raises a DataError."""
  try:
    with regular_files.open_file(os.path.join(directory, FILE)) as file:
      found = json.load(file)
    if found['format'] != _FORMAT:
      raise data_set.DataError(
        directory,
        f'must be of format {_FORMAT}, which this version reads; got '
        f'{found["format"]!r}.',
      )
    names = [field.name for field in dataclasses.fields(RecordingManifest)]
    manifest = RecordingManifest(**{name: found[name] for name in names})
    for one in manifest.spec.values():
      specs.Array(one['shape'], np.dtype(one['dtype']))
  except data_set.DataError:
    raise
  except Exception as error:  # Any other JSON may raise anything.
    raise data_set.DataError(
      directory,
      f'has a {FILE} that cannot be read: {type(error).__name__}: {error}.',
    ) from error
  return manifest


def columns_of(
  spec: specs.EnvironmentSpec,
) -> Iterator[tuple[str, specs.Array]]:
  """Yields name and spec of a recording's columns, without step types."""
  yield 'reward', spec.rewards
  yield 'discount', spec.discounts
  for nest, root in (
    (spec.observations, 'observation'),
    (spec.actions, 'action'),
  ):
    yield from zip(nests.paths_of(nest, root), tree.flatten(nest))


def _write(directory: str, manifest: RecordingManifest) -> None:
  temporary = os.path.join(directory, f'.{FILE}.{os.getpid()}')
  described = {'format': _FORMAT, **dataclasses.asdict(manifest)}
  try:
    with open(temporary, 'w', encoding='utf-8') as file:
      json.dump(described, file, indent=2)
      file.flush()
      os.fsync(file.fileno())
    os.replace(temporary, os.path.join(directory, FILE))
  except OSError:
    with contextlib.suppress(OSError):
      os.remove(temporary)
    raise


class Recording(data_set.DataSet):
  """Recording written by `--record` or `repertory record`.

  Attributes:
    manifest: Agent and environment of the recording.
  """

  def __init__(self, path: str):
    """Opens the recording, and reads the lengths of all episodes."""
    self.path = path
    self.manifest = read_manifest(path)
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
    found = {
      name: (tuple(one['shape']), np.dtype(one['dtype']))
      for name, one in self.manifest.spec.items()
    }
    origin = f', of {self.manifest.environment}'
    data_set.check_columns(self.path, found, dict(columns_of(spec)), origin)
    for _ in self.read(spec._replace(observations=())):
      pass  # Observations may be large: `read` checks them.

  def read(self, spec):
    names = [name for name, _ in columns_of(spec)]
    for file in self._files:
      step_type, *found = self._read(file, names)
      path = os.path.join(self.path, file)
      yield data_set.convert(path, spec, step_type, dict(zip(names, found)))

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
    except Exception as error:  # Broken bytes may raise anything.
      raise data_set.DataError(
        path, f'is damaged: {text_of(error)}.'
      ) from error
    step_type = data_set.check_step_type(path, found[0])
    shapes = sorted({column.shape[:1] for column in found})
    if len(shapes) > 1:
      raise data_set.DataError(
        path,
        f'is damaged: its columns must have the same length; got {shapes}.',
      )
    return [step_type, *found[1:]]


def open_data(path: str) -> data_set.DataSet:
  """Opens a recording of this package, or a Minari data set.

  Args:
    path: Folder of a recording, or of a Minari data set, or its `data`.

  Raises:
    DataError: If it is neither, empty or damaged.
  """
  if not os.path.isdir(path):
    what = 'a file' if os.path.lexists(path) else 'nothing'
    raise data_set.DataError(path, f'must be a folder; got {what}.')
  if os.path.exists(os.path.join(path, FILE)):
    return Recording(path)
  found = minari.find_file(path)
  if found is not None:
    return minari.MinariData(path, found)
  minari.check_format(path)
  names = sorted(os.listdir(path))
  raise data_set.DataError(
    path,
    f'must have a {FILE} of a recording or a '
    f'{minari.FILE} of Minari; got '
    + (f'other files, such as {names[0]}.' if names else 'an empty folder.'),
  )
