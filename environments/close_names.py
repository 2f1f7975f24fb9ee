"""Refuses names that are not known, with those that are close."""

from collections.abc import Sequence

from repertory.components import settings
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
  hint = settings.did_you_mean(name, known, 3)
  raise argument_checks.ArgumentError(
    argument, f'expected one of {which}, got {name!r}.{hint}'
  )
