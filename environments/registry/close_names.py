"""Errors for unknown names, with suggestions of similar ones."""

from collections.abc import Sequence

from repertory.components.config import settings
from repertory.environments.values import argument_checks


def check(argument: str, name: str, known: Sequence[str]) -> None:
  """Raises an error if a name is unknown.

  Args:
    argument: Name of the argument in the message.
    name: The given name.
    known: All valid names; the message lists them if they are few.

  Raises:
    ArgumentError: If `name` is not in `known`; suggests similar names.
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
