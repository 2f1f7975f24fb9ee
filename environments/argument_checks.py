"""Errors and checks of what environments are made of."""

import operator
from typing import Any


class ArgumentError(ValueError):
  """An argument of an environment, or of what makes or holds it, does not fit.

  It keeps the argument's name, so that who passed it on under another name, as
  the command line does, need not look for it in the message.

  Attributes:
    argument: Its name.
    problem: What was expected and what came.
  """

  def __init__(self, argument: str, problem: str):
    super().__init__(argument, problem)
    self.argument = argument
    self.problem = problem

  def __str__(self) -> str:
    return f'`{self.argument}`: {self.problem}'


def check_integer(name: str, value: Any, minimum: int) -> int:
  """Returns `value` as a Python integer.

  Args:
    name: What the message calls the argument.
    value: What was given: NumPy's integers pass, booleans do not.
    minimum: The smallest allowed value.

  Raises:
    ArgumentError: If `value` is not an integer or too small.
  """
  try:
    number = operator.index(value)
  except TypeError:
    number = minimum - 1
  if isinstance(value, bool) or number < minimum:
    raise ArgumentError(
      name, f'expected an integer of at least {minimum}, got {value!r}.'
    )
  return number
