"""Cases that need not be tried every day: `make test-chaos` runs them."""

from collections.abc import Collection, Iterable

import pytest


def daily(cases: Iterable, few: Collection) -> list:
  """Returns the cases as parameters, with all but a few left to chaos tests."""
  return [
    case if case in few else pytest.param(case, marks=pytest.mark.chaos)
    for case in cases
  ]
