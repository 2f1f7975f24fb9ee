"""Manifests of recordings: `manifest.json`, next to the files of steps."""

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import tree

from repertory.components import specs
from repertory.components.config import regular_files
from repertory.components.config.settings import SettingError, text_of
from repertory.components.offline import data_set
from repertory.components.runtime import nests

FILE = 'manifest.json'

# Version of the layout; readers reject others.
_FORMAT = 1


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
    columns = {name: _describe(one) for name, one in columns_of(spec)}
    return cls(agent, environment, columns, version)

  def explain_difference(self, other: 'RecordingManifest') -> str:
    """Describes a difference to another manifest; '' if they match."""
    for name in ('agent', 'environment', 'spec'):
      mine, its = getattr(self, name), getattr(other, name)
      if mine != its:
        return f'{name} is {its!r} there, and {mine!r} here'
    return ''


def prepare(
  directory: str,
  manifest: RecordingManifest,
  writes: bool = True,
  setting: str = 'record',
) -> None:
  """Creates the folder of a recording, or validates an existing one.

  Args:
    directory: Folder of the recording.
    manifest: Manifest of the recording.
    writes: Whether to create the folder, or only to validate.
    setting: Name of the setting, for the message.

  Raises:
    SettingError: If the folder holds other data or is not writable; nothing was
      written then.
  """
  names = os.listdir(directory) if os.path.isdir(directory) else []
  # Hidden files may belong to a run that creates the folder or writes there.
  names = [name for name in names if not name.startswith('.')]
  if os.path.lexists(directory) and not os.path.isdir(directory):
    raise SettingError(
      setting, f'must be a folder, or a new one; {directory} is a file.'
    )
  if FILE in names:
    difference = manifest.explain_difference(read(directory))
    if difference:
      raise SettingError(
        setting,
        f'must be a new folder, or one of recordings with the same manifest; '
        f'in {directory}, {difference}. Name another folder: data may be read '
        'from several.',
      )
    return
  if names:
    raise SettingError(
      setting,
      f'must be a folder of recordings, or a new one; {directory} has other '
      f'files, such as {min(names)}.',
    )
  if not writes:
    return
  is_new = not os.path.isdir(directory)
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


def read(directory: str) -> RecordingManifest:
  """Reads the manifest of a recording.

  Raises:
    DataError: If it cannot be read.
  """
  path = os.path.join(directory, FILE)
  try:
    with regular_files.open_file(path) as file:
      found = json.load(file)
    _check_form(found, directory)
    names = [field.name for field in dataclasses.fields(RecordingManifest)]
    return RecordingManifest(**{name: found[name] for name in names})
  except (OSError, ValueError, RecursionError) as error:
    if isinstance(error, data_set.DataError):
      raise
    raise data_set.DataError(
      directory,
      f'has a {FILE} that cannot be read: {text_of(error)}.',
    ) from error


def _check_form(found: Any, directory: str) -> None:
  """Validates the form of a manifest.

  Raises:
    DataError: If it is of another version of the format.
    ValueError: Naming the entry.
  """
  if not isinstance(found, dict):
    raise ValueError(f'it must be a JSON object, got {found!r:.80}')
  version = found.get('format')
  if isinstance(version, int) and version != _FORMAT:
    raise data_set.DataError(
      directory,
      f'must be of format {_FORMAT}, which this version reads; got {version}.',
    )
  for name, kind, kind_name in (
    ('format', int, 'an integer'),
    ('agent', str, 'text'),
    ('environment', str, 'text'),
    ('version', str, 'text'),
    ('spec', dict, 'a JSON object'),
  ):
    if not isinstance(found.get(name), kind):
      value = f'{found[name]!r:.80}' if name in found else 'nothing'
      raise ValueError(f'{name!r} must be {kind_name}, got {value}')
  for name, one in found['spec'].items():
    try:
      specs.Array(one['shape'], np.dtype(one['dtype']))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
      raise ValueError(
        f"'spec' must have shape and dtype of column {name!r}, got {one!r:.80}"
      ) from error


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


def _describe(spec: specs.Array) -> dict[str, Any]:
  described = {'shape': list(spec.shape), 'dtype': np.dtype(spec.dtype).name}
  if isinstance(spec, specs.BoundedArray):
    for name in ('minimum', 'maximum'):
      bound = np.asarray(getattr(spec, name))
      # Most bounds are uniform; JSON has no infinity.
      is_same = bound.size and (bound == bound.flat[0]).all()
      values = bound.flat[0] if is_same else bound
      described[name] = _plain(values)
  return described


def _plain(values: Any) -> Any:
  if isinstance(values, np.ndarray):
    return [_plain(one) for one in values]
  number = values.item()
  return number if np.isfinite(number) else str(number)


def _write(directory: str, manifest: RecordingManifest) -> None:
  temporary = os.path.join(directory, f'.{FILE}.{os.getpid()}')
  try:
    with open(temporary, 'w', encoding='utf-8') as file:
      json.dump(
        {'format': _FORMAT, **dataclasses.asdict(manifest)}, file, indent=2
      )
      file.flush()
      os.fsync(file.fileno())
    os.replace(temporary, os.path.join(directory, FILE))
  except OSError:
    with contextlib.suppress(OSError):
      os.remove(temporary)
    raise
