"""Argument errors and checks of environments and their factories."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from repertory.components.config import settings

_MAX_SEED = 2**31 - 1


class ArgumentError(ValueError):
  """Invalid argument of an environment, of its factory, or of a batch.

  The name of the argument is kept as an attribute, so that callers that expose
  it under another name, such as the command line, need not parse the message.

  Attributes:
    argument: Name of the argument.
    problem: The expected and the given value.
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
    name: Name of the argument in the message.
    value: The given value. NumPy integers pass, booleans do not.
    minimum: The smallest allowed value.

  Raises:
    ArgumentError: If `value` is not an integer, or is too small.
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


def combine_seeds(seeds: Sequence[int]) -> int:
  """Returns a seed of 31 bits that depends on all given seeds.

  A vector environment may derive the seeds of its slots by counting upwards
  from its single seed; with consecutive seeds, most episodes would repeat.
  """
  checked = [check_integer('seed', seed, 0) for seed in seeds]
  return int(np.random.SeedSequence(checked).generate_state(1)[0] >> 1)


def fold_seed(seed: int) -> int:
  """Returns a seed of 31 bits; smaller seeds are unchanged."""
  checked = check_integer('seed', seed, 0)
  return checked if checked <= _MAX_SEED else combine_seeds([checked])


def check_known(argument: str, name: str, known: Sequence[str]) -> None:
  """Raises an ArgumentError for an unknown name, with similar ones.

  Args:
    argument: Name of the argument in the message.
    name: The given name.
    known: All valid names; the message lists them if they are few.
  """
  if name in known:
    return
  which = ', '.join(known)
  if len(known) > 30:
    which = f'{len(known)} names ({", ".join(known[:3])}, ...)'
  hint = settings.did_you_mean(name, known, 3)
  raise ArgumentError(argument, f'expected one of {which}, got {name!r}.{hint}')
