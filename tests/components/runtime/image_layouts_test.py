"""Tests of `components/runtime/image_layouts.py`."""

import pytest

from repertory.components.runtime import image_layouts


@pytest.mark.parametrize(
  ('shape', 'is_first', 'is_last'),
  [
    ((3, 84, 84), True, False),
    ((3, 210, 160), True, False),
    ((9, 64, 64), True, False),
    ((84, 84, 12), False, True),
    ((210, 160, 3), False, True),
    # A board is recognized by its sides only.
    ((10, 10, 4), False, True),
    ((4, 10, 10), False, False),
    ((16, 8, 4), False, False),
    ((64, 64, 64), False, False),
    ((0, 84, 84), False, False),
    ((84, 84), False, False),
    ((), False, False),
  ],
  ids=str,
)
def test_shapes(shape, is_first, is_last):
  assert image_layouts.is_channels_first(shape) == is_first
  assert image_layouts.is_channels_last(shape) == is_last
