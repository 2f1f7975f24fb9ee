"""What can be chosen by name, and is found by its file being there."""

import importlib
import pkgutil
from typing import Generic, TypeVar

from repertory.components import settings

T = TypeVar('T')


class Registry(Generic[T]):
  """Classes by name, in the order in which they rank.

  Whoever asks first has modules of the package imported; those register what
  they have.
  """

  def __init__(self, package: str, what: str, suffix: str = ''):
    """Finds nothing yet.

    Args:
      package: Full name of the one whose modules register.
      what: The argument that takes the names, for errors.
      suffix: What the names of those modules end with.
    """
    self._package = package
    self._what = what
    self._suffix = suffix
    self._found: dict[str, tuple[int, T]] = {}
    self._is_complete = False

  def register(self, name: str, entry: T, rank: int = 99) -> None:
    """Adds an entry.

    Args:
      name: What it is chosen by; a later one of the same name takes its place.
      entry: What is chosen.
      rank: Where it is listed, from the simplest to the most special.
    """
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
    """Returns the entry of that name.

    Raises:
      ValueError: If there is none, with the nearest name.
    """
    entries = self.entries
    if name not in entries:
      raise settings.SettingError(
        self._what,
        f'must be one of {", ".join(entries)}; got {name!r}.'
        + settings.did_you_mean(name, entries),
      )
    return entries[name]
