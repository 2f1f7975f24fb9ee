"""Packages whose modules are imported on first access.

TensorFlow takes two seconds to import. Code that only lists or checks settings
does without it.
"""

import importlib
import pkgutil
import sys
from collections.abc import Callable
from typing import Any


def modules(
  package: str, **sources: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
  """Returns `__getattr__` and `__dir__` for a package (PEP 562).

  Then `package.module` works without an import statement.

    __getattr__, __dir__ = lazy_imports.modules(__name__, DQNBuilder='builder')

  Args:
    package: The package's `__name__`.
    **sources: Further names that the package exports, each with the module that
      defines it.
  """

  def find(name: str) -> Any:
    if name in sources:
      module = importlib.import_module(f'{package}.{sources[name]}')
      return getattr(module, name)
    full_name = f'{package}.{name}'
    if not name.startswith('_'):  # Python looks up some private names itself.
      try:
        return importlib.import_module(full_name)
      except ModuleNotFoundError as error:
        if error.name != full_name:
          raise
    raise AttributeError(f"module '{package}' has no attribute '{name}'")

  def names() -> list[str]:
    module = sys.modules[package]
    found = {one.name for one in pkgutil.iter_modules(module.__path__)}
    return sorted(found | set(sources) | set(vars(module)))

  return find, names
