"""Imports of optional packages, with installation hints and without noise."""

import contextlib
import importlib
import sysconfig
import threading
import warnings
from collections.abc import Iterator
from typing import Any

# Filters of warnings are global. If two nodes in threads replaced them at once,
# the last one to leave would restore that of the other for good.
_LOCK = threading.RLock()

# Python versions for which an extra has packages, if not for all.
_VERSIONS = {
  'dm-control': ('3.10', '3.11', '3.12'),
  'gymnax': ('3.10', '3.11'),
}


def requirement(extra: str) -> str:
  """Returns the command that installs an extra, or the Pythons it needs."""
  if wanted := _unmet(extra):
    return f'Python {wanted}'
  return f"pip install 'repertory[{extra}]'"


def _unmet(extra: str) -> str:
  """Returns the versions of Python that an extra needs; '' on one of them."""
  versions = _VERSIONS.get(extra)
  if versions is None or sysconfig.get_python_version() in versions:
    return ''
  return f'{", ".join(versions[:-1])} or {versions[-1]}'


def import_extra(module: str, extra: str) -> Any:
  """Returns a module, such as 'dm_control.suite', that an extra installs.

  Raises:
    ImportError: If its package is not installed; says how to install it, or
      for which versions of Python it exists. An import error inside an
      installed package is raised unchanged.
  """
  package = module.partition('.')[0]
  try:
    return importlib.import_module(module)
  except ModuleNotFoundError as error:
    missing = (error.name or '').partition('.')[0]
    if missing != package:
      raise
    if wanted := _unmet(extra):
      raise ImportError(
        f'Python must be {wanted} for the extra {extra}, which this '
        f'environment needs, got {sysconfig.get_python_version()}. Install it '
        'there.'
      ) from error
    raise ImportError(
      f'This environment needs the package {package}. Install it with: '
      f'{requirement(extra)}'
    ) from error


@contextlib.contextmanager
def ignored_warnings(
  message: str = '', category: type[Warning] = Warning
) -> Iterator[None]:
  """Ignores warnings of a category whose start matches a regular expression."""
  with _LOCK, warnings.catch_warnings():
    warnings.filterwarnings('ignore', message, category)
    yield


def silence_gym() -> None:
  """Suppresses the deprecation notice that `gym` prints on import."""
  with contextlib.suppress(ModuleNotFoundError):
    importlib.import_module('gym_notices.notices').notices.clear()
