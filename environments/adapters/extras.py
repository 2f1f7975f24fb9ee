"""Imports of optional packages, with installation hints and without noise."""

import contextlib
import importlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

# Filters of warnings are global. If two nodes in threads replaced them at once,
# the last one to leave would restore that of the other for good.
_LOCK = threading.RLock()


def import_extra(module: str, extra: str) -> Any:
  """Returns a module, such as 'dm_control.suite', that an extra installs.

  Raises:
    ImportError: If its package is not installed; says how to install it. An
      import error inside an installed package is raised unchanged.
  """
  package = module.partition('.')[0]
  try:
    return importlib.import_module(module)
  except ModuleNotFoundError as error:
    missing = (error.name or '').partition('.')[0]
    if missing != package:
      raise
    raise ImportError(
      f'This environment needs the package {package}. Install it with:'
      f" pip install 'repertory[{extra}]'"
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
