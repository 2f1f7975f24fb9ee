"""Transfer of the user's own modules to the hosts of a cluster."""

import os
import site
import sys
import sysconfig
from typing import Any

from repertory.components.config.settings import SettingError

# Patterns of files that are not the user's code or secret, as in .gitignore.
_EXCLUDED = (
  '.?*', '__pycache__', '*.pyc', '/venv', '/runs', '/build', '/dist', '/logs',
  '/checkpoints',
)  # fmt: skip


def folder() -> str | None:
  """Returns the folder of the user's modules, or None.

  The folder of a module given by name, or of the script, or otherwise the first
  of PYTHONPATH; not the folders of installed packages.
  """
  installed = [
    *sysconfig.get_paths().values(), *site.getsitepackages(),
    site.getusersitepackages(), sys.prefix, sys.base_prefix,
  ]  # fmt: skip
  real = [os.path.realpath(path) + os.sep for path in installed]
  # A system's Python has a prefix such as /usr, but never the root.
  real = [path for path in real if path != os.sep * 2]
  for path in sys.path:
    found = os.path.realpath(path or os.getcwd())
    if os.path.isdir(found) and not (found + os.sep).startswith(tuple(real)):
      return found
  return None


def runtime_environment() -> dict[str, Any] | None:
  """Returns Ray's runtime environment that copies `folder`; None without one.

  Raises:
    SettingError: If the folder is the home directory or the root.
  """
  path = folder()
  if path is None:
    return None
  if path in (os.sep, os.path.realpath(os.path.expanduser('~'))):
    raise SettingError(
      'ray_address',
      'needs your code in its own folder, which is copied to all hosts; got '
      f'{path}.',
    )
  return {'working_dir': path, 'excludes': list(_EXCLUDED)}
