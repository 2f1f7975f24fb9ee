"""Checks of constructor arguments that environments have in common."""

import operator
from typing import Any


def check_integer(name: str, value: Any, minimum: int) -> int:
  """Returns `value` as a Python integer.

  Args:
    name: Of the argument, for the message.
    value: What was given: NumPy's integers pass, booleans do not.
    minimum: The smallest allowed value.

  Raises:
    ValueError: If `value` is not an integer or too small.
  """
  try:
    number = operator.index(value)
  except TypeError:
    number = minimum - 1
  if isinstance(value, bool) or number < minimum:
    raise ValueError(
      f'`{name}`: expected an integer of at least {minimum}, got {value!r}.'
    )
  return number
