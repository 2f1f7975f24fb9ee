"""Tests of sparkline."""

import itertools
import math

import pytest

from repertory.components.loggers import sparkline


@pytest.mark.parametrize(
  ('values', 'width', 'expected'),
  [
    ([], 5, ''),
    ([1.0], 0, ''),
    ([3.0, 3.0], 5, 'aa'),
    # (v + 1) / 3 * 3 gives 0, 1, 3.
    ([-1.0, 0.0, 2.0], 5, 'abd'),
    # Pairs: 0.5, 2.5 and 4.5, hence low, (1.5 -> 2) and high.
    ([0, 1, 2, 3, 4, 5], 3, 'acd'),
    ([0.0, math.nan, 3.0, math.inf], 5, 'ad'),
  ],
)
def test_draw(values, width, expected):
  assert sparkline.draw(values, width, 'abcd') == expected


def test_history_keeps_all_until_full():
  history = sparkline.History(capacity=4)
  for i in range(4):
    history.add(i)
  assert history.values == (0, 1, 2, 3)


@pytest.mark.parametrize('capacity', [2, 3, 4, 7, 16])
@pytest.mark.parametrize('num', [5, 64, 100, 1001])
def test_history_is_bounded_and_even(capacity, num):
  history = sparkline.History(capacity)
  for i in range(num):
    history.add(i)
  values = history.values
  assert min(num, capacity // 2) <= len(values) <= capacity
  assert values[0] == 0
  gaps = {b - a for a, b in itertools.pairwise(values)}
  assert len(gaps) <= 1
  # The next value is not due yet: no recent one is missing.
  stride = gaps.pop() if gaps else num
  assert num - values[-1] <= stride


def test_history_needs_room():
  with pytest.raises(ValueError, match=r'capacity: expected .* found 1'):
    sparkline.History(1)
