"""Imports of optional packages, with installation hints."""

import importlib
from typing import Any


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
