"""Registries of classes by name, which import the modules of a package."""

import functools
import importlib
import pkgutil
from typing import Any, Generic, TypeVar

from repertory.components.config import choices

T = TypeVar('T')
_Kind = TypeVar('_Kind')


class Registry(Generic[T]):
  """Registry of classes by name, ordered by rank.

  The modules of a package register them. A lookup imports the module of that
  name, or all if it has no such entry; a listing imports all.
  """

  def __init__(self, package: str, what: str, suffix: str = ''):
    """`what` is the setting of the names; modules' names end with `suffix`."""
    self._package = package
    self._what = what
    self._suffix = suffix
    self._found: dict[str, tuple[int, T]] = {}

  def register(self, name: str, entry: T, rank: int = 99) -> None:
    """Adds or replaces an entry; `rank` is its position in listings."""
    self._found[name] = (rank, entry)

  def add(self, kind: _Kind) -> _Kind:
    """Registers a class by its `name` and `rank`; a decorator."""
    entry: Any = kind
    self.register(entry.name, entry, entry.rank)
    return kind

  @property
  def entries(self) -> dict[str, T]:
    """All entries by name."""
    for module in self._modules:
      importlib.import_module(module)
    ranked = sorted(self._found.items(), key=lambda item: (item[1][0], item[0]))
    return {name: entry for name, (_, entry) in ranked}

  def get(self, name: str) -> T:
    """Returns the entry with this name.

    Raises:
      ValueError: If there is no such entry; suggests the nearest name.
    """
    namesake = f'{self._package}.{name}{self._suffix}'
    if namesake in self._modules:
      importlib.import_module(namesake)
    if name not in self._found:
      choices.check(self._what, name, self.entries)
    return self._found[name][1]

  @functools.cached_property
  def _modules(self) -> list[str]:
    package = importlib.import_module(self._package)
    return [
      f'{self._package}.{module.name}'
      for module in pkgutil.iter_modules(package.__path__)
      if module.name.endswith(self._suffix)
    ]
