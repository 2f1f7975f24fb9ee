"""The user's own modules, which the hosts of a cluster may lack."""

import os
import site
import sys
import sysconfig
from typing import Any

from repertory.components.settings import SettingError

# What is no code, that of others, or secret, as .gitignore would say it.
_EXCLUDED = (
  '.?*', '__pycache__', '*.pyc', '/venv', '/runs', '/build', '/dist', '/logs',
  '/checkpoints',
)  # fmt: skip


def folder() -> str | None:
  """Returns the folder whose modules the program imports; None if none.

  That of a module that was given by name, or of its script, or else the first
  of PYTHONPATH; not those where packages are installed.
  """
  installed = [
    *sysconfig.get_paths().values(), *site.getsitepackages(),
    site.getusersitepackages(), sys.prefix, sys.base_prefix,
  ]  # fmt: skip
  real = [os.path.realpath(path) + os.sep for path in installed]
  # The system's Python has a prefix such as /usr, but not the root.
  real = [path for path in real if path != os.sep * 2]
  for path in sys.path:
    found = os.path.realpath(path or os.getcwd())
    if os.path.isdir(found) and not (found + os.sep).startswith(tuple(real)):
      return found
  return None


def runtime_environment() -> dict[str, Any] | None:
  """Returns what lets Ray copy that folder to each host; None without one.

  Raises:
    SettingError: If it is the home directory, or the root.
  """
  path = folder()
  if path is None:
    return None
  if path in (os.sep, os.path.realpath(os.path.expanduser('~'))):
    raise SettingError(
      'ray_address',
      f'needs your code in a folder of its own, for that is copied to all '
      f'hosts; got {path}.',
    )
  return {'working_dir': path, 'excludes': list(_EXCLUDED)}
