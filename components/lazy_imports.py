"""Packages whose modules are imported when they are first asked for.

TensorFlow takes two seconds to import. What only tells of settings, or refuses
them, does without.
"""

import importlib
import pkgutil
import sys
from collections.abc import Callable
from typing import Any


def modules(
  package: str, **sources: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
  """Returns what a package has as `__getattr__` and `__dir__` (PEP 562).

  Then `package.module` is there without having been imported before.

    __getattr__, __dir__ = lazy_imports.modules(__name__, DQNBuilder='builder')

  Args:
    package: The package's `__name__`.
    **sources: By name of something else that the package offers: the module of
      the package that has it.
  """

  def find(name: str) -> Any:
    if name in sources:
      module = importlib.import_module(f'{package}.{sources[name]}')
      return getattr(module, name)
    full_name = f'{package}.{name}'
    if not name.startswith('_'):  # Python asks for some of its own.
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
