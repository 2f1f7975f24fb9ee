"""Tests of figures."""

import math

import pytest

from repertory.components.loggers import figures


@pytest.mark.parametrize(
  ('value', 'expected'),
  [
    (999, '999'),
    # Rounds to a thousand thousands, which is a million.
    (999_499, '999 k'),
    (999_500, '1.00 M'),
    (9_996, '10.0 k'),
    (4e15, '4000 T'),
    (0.0, '0.00'),
    (0.871, '0.87'),
    (999.9, '1.00 k'),
    (0.00012, '1.2e-04'),
    (math.nan, 'nan'),
    (-math.inf, '-inf'),
  ],
)
def test_number(value, expected):
  assert figures.number(value) == expected


@pytest.mark.parametrize(
  ('seconds', 'expected'),
  [
    (0, '0.0 s'),
    (9.96, '10 s'),
    (59.6, '1 m 00 s'),
    (3723, '1 h 02 m'),
    (86_399.9, '1 d 00 h'),
    (26 * 3600, '1 d 02 h'),
    (math.inf, 'inf'),
  ],
)
def test_duration(seconds, expected):
  assert figures.duration(seconds) == expected
