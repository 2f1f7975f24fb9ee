"""Packages whose modules are imported on first access.

A run then imports only what it uses, and code that only lists or checks
settings does without TensorFlow, which takes two seconds to import.
"""

import ast
import functools
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable
from typing import Any


def modules(
  package: str,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
  """Returns `__getattr__` and `__dir__` for a package (PEP 562).

  Then `package.module` works without an import statement, and names that the
  package imports for type checkers are imported on first access.

    if TYPE_CHECKING:
      from repertory.agents.dqn.learning import DQNBuilder
      from repertory.agents.dqn.networks import *

    __all__ = ['DQNBuilder', 'make_network']
    __getattr__, __dir__ = lazy_imports.modules(__name__)

  Args:
    package: The package's `__name__`.
  """

  def find(name: str) -> Any:
    full_name = f'{package}.{name}'
    if name.startswith('_'):  # Python looks up some private names itself.
      pass
    elif name in (sources := _exports(package)):
      found = getattr(importlib.import_module(sources[name]), name)
      setattr(sys.modules[package], name, found)
      return found
    else:
      try:
        return importlib.import_module(full_name)
      except ModuleNotFoundError as error:
        if error.name != full_name:
          raise
    raise AttributeError(f"module '{package}' has no attribute '{name}'")

  def names() -> list[str]:
    module = sys.modules[package]
    found = {one.name for one in pkgutil.iter_modules(module.__path__)}
    return sorted(found.union(_exports(package), vars(module)))

  return find, names


@functools.cache
def _exports(package: str) -> dict[str, str]:
  """Returns the module of each name imported under `if TYPE_CHECKING:`."""
  # Read, so that each name is written once; also from a zip file.
  module = sys.modules[package]
  exports = {}
  for block in ast.parse(inspect.getsource(module)).body:
    if not isinstance(block, ast.If):
      continue
    for node in block.body:
      if isinstance(node, ast.ImportFrom) and node.module not in (
        None,
        package,
      ):
        names = [alias.name for alias in node.names]
        if names == ['*']:
          names = _defined(node.module).intersection(module.__all__)
        exports |= dict.fromkeys(names, node.module)
  return exports


def _defined(module: str) -> set[str]:
  """Returns the names that a module defines, without importing it."""
  package, _, name = module.rpartition('.')
  source = (pkgutil.get_data(package, f'{name}.py') or b'').decode()
  pattern = r'^(?:class |def )?(\w+)(?=[(:]| = )'
  return set(re.findall(pattern, source, re.MULTILINE))
