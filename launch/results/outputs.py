"""Output files: checked beforehand, and replaced atomically."""

import contextlib
import os
from collections.abc import Iterator, Sequence

from repertory.components.config.settings import SettingError


def check(output: str, endings: Sequence[str]) -> None:
  """Raises SettingError unless a file can be written under this name."""
  if not output.lower().endswith(tuple(endings)):
    raise SettingError(
      'output', f'must end with {" or ".join(endings)}; got {output!r}.'
    )
  if os.path.isdir(output):
    raise SettingError('output', f'must be a file; {output} is a folder.')
  folder = os.path.abspath(os.path.dirname(output))
  while not os.path.exists(folder):
    folder = os.path.dirname(folder)
  if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
    raise SettingError(
      'output',
      f'must be in a writable folder; got {output}, and {folder} is not.',
    )


@contextlib.contextmanager
def replacing(output: str) -> Iterator[str]:
  """Yields a temporary path, which replaces a file at the end of the block.

  Readers see the old file or the new one, never a part. Its folder is made.

  Raises:
    SettingError: If it cannot be written.
  """
  temporary = f'{output}.{os.getpid()}.tmp'
  try:
    os.makedirs(os.path.dirname(output) or '.', exist_ok=True)
    yield temporary
    os.replace(temporary, output)
  except OSError as error:
    raise SettingError(
      'output', f'must be writable; got {output}: {error.strerror or error}.'
    ) from error
  finally:
    with contextlib.suppress(OSError):
      os.remove(temporary)
