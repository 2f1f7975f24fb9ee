"""Cases that need not be tried every day: `make test-chaos` runs them."""

import functools
from collections.abc import Callable, Collection, Iterable

import pytest


def daily(cases: Iterable, few: Collection) -> list:
  """Returns the cases as parameters, with all but a few left to chaos tests."""
  return [
    case if case in few else pytest.param(case, marks=pytest.mark.chaos)
    for case in cases
  ]


def rarely(check: Callable) -> Callable:
  """Returns a check of a conformance class that is left to chaos tests."""

  @pytest.mark.chaos
  @functools.wraps(check)
  def rare(*args, **kwargs):
    return check(*args, **kwargs)

  return rare
