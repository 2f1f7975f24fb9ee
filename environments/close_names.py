"""Says which names there are when one is not known."""

import difflib
from collections.abc import Sequence


def describe(what: str, name: str, known: Sequence[str]) -> str:
  """Returns the message for a name that is not known.

  Args:
    what: What the name is of, such as '`game`'.
    name: What was given.
    known: All names; listed if there are few, else only those that are close.
  """
  by_folded = {each.lower(): each for each in known}
  close = difflib.get_close_matches(name.lower(), by_folded, 3, 0.5)
  hint = ''
  if close:
    hint = f' Did you mean {" or ".join(by_folded[each] for each in close)}?'
  if len(known) <= 30:
    return f'{what}: expected one of {", ".join(known)}, got {name!r}.{hint}'
  example = ', '.join(known[:3])
  return (
    f'{what}: expected one of {len(known)} names ({example}, ...), got'
    f' {name!r}.{hint}'
  )
