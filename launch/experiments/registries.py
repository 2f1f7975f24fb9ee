"""Registries of classes by name, which import the modules of a package."""

import importlib
import pkgutil
from typing import Generic, TypeVar

from repertory.components.config import settings

T = TypeVar('T')


class Registry(Generic[T]):
  """Registry of classes by name, ordered by rank.

  The first lookup imports the modules of the package, which register their
  classes.
  """

  def __init__(self, package: str, what: str, suffix: str = ''):
    """Imports nothing yet; `what` is the setting of the names, for errors.

    Only modules whose names end with `suffix` are imported.
    """
    self._package = package
    self._what = what
    self._suffix = suffix
    self._found: dict[str, tuple[int, T]] = {}
    self._is_complete = False

  def register(self, name: str, entry: T, rank: int = 99) -> None:
    """Adds or replaces an entry; `rank` is its position in listings."""
    self._found[name] = (rank, entry)

  @property
  def entries(self) -> dict[str, T]:
    """All entries by name."""
    if not self._is_complete:
      package = importlib.import_module(self._package)
      for module in pkgutil.iter_modules(package.__path__):
        if module.name.endswith(self._suffix):
          importlib.import_module(f'{self._package}.{module.name}')
      self._is_complete = True
    ranked = sorted(self._found.items(), key=lambda item: (item[1][0], item[0]))
    return {name: entry for name, (_, entry) in ranked}

  def get(self, name: str) -> T:
    """Returns the entry with this name.

    Raises:
      ValueError: If there is no such entry; suggests the nearest name.
    """
    entries = self.entries
    if name not in entries:
      raise settings.SettingError(
        self._what,
        f'must be one of {", ".join(entries)}; got {name!r}.'
        + settings.did_you_mean(name, entries),
      )
    return entries[name]
