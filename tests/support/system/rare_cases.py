"""Cases that only `make test-chaos` runs."""

import functools
from collections.abc import Callable, Collection, Iterable

import pytest


def daily(cases: Iterable, few: Collection) -> list:
  """Returns the cases as parameters, all but a few marked as chaos tests."""
  return [
    case if case in few else pytest.param(case, marks=pytest.mark.chaos)
    for case in cases
  ]


def rarely(check: Callable) -> Callable:
  """Marks a check of a conformance class as a chaos test."""

  @pytest.mark.chaos
  @functools.wraps(check)
  def rare(*args, **kwargs):
    return check(*args, **kwargs)

  return rare
