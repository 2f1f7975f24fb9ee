"""Says which names there are when one is not known."""

import difflib
from collections.abc import Iterable, Sequence

from repertory.environments import argument_checks


def check(argument: str, name: str, known: Sequence[str]) -> None:
  """Refuses a name that is not known.

  Args:
    argument: What the name was given as.
    name: What was given.
    known: All names; the message lists them if they are few.

  Raises:
    ArgumentError: With those that are close.
  """
  if name in known:
    return
  which = ', '.join(known)
  if len(known) > 30:
    which = f'{len(known)} names ({", ".join(known[:3])}, ...)'
  raise argument_checks.ArgumentError(
    argument, f'expected one of {which}, got {name!r}.{hint(name, known)}'
  )


def hint(name: str, known: Iterable[str]) -> str:
  """Returns ' Did you mean ...?' with the names that are close, or nothing."""
  close = [repr(each) for each in find(name, known)]
  return f' Did you mean {" or ".join(close)}?' if close else ''


def find(name: str, known: Iterable[str], most: int = 3) -> list[str]:
  """Returns the names that are close, whatever their case."""
  by_folded = {each.lower(): each for each in known}
  close = difflib.get_close_matches(name.lower(), by_folded, most, 0.5)
  return [by_folded[each] for each in close]
