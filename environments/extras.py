"""Imports packages that only some environments need."""

import importlib
from typing import Any


def import_extra(module: str, extra: str) -> Any:
  """Returns a module that an extra of this package installs.

  Args:
    module: Such as 'dm_control.suite'.
    extra: The extra it comes with.

  Raises:
    ImportError: If the module's package is not installed; says how to install
      it. An import that fails inside an installed package stays what it is.
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
