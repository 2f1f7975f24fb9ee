"""Tests of ring buffers, against a slow twin."""

import tracemalloc

import numpy as np
import pytest

from repertory.components.adders import rings

_SIZE, _NUM_SLOTS = 5, 4


def _fill(num_moments, shape):
  """Returns ring buffers, and all steps that were written to them."""
  random = np.random.default_rng(0)
  filled = rings.Rings(_SIZE)
  moments = [
    (
      random.integers(1, 99, _NUM_SLOTS),
      random.random([_NUM_SLOTS, *shape], np.float32),
    )
    for _ in range(num_moments)
  ]
  for time, leaves in enumerate(moments):
    filled.write(time, list(leaves))
  return filled, moments


# Leaves of 4 and of 400 bytes take different ways.
@pytest.mark.parametrize('shape', [(), (100,)])
@pytest.mark.parametrize(
  ('slots', 'starts', 'begins'),
  [
    ([0, 1, 2, 3], [6, 6, 6, 6], [7, 0, 8, 0]),
    ([3, 1, 0, 2], [6, 6, 6, 6], [0, 0, 0, 0]),
    ([0, 1, 2, 3], [5, 6, 7, 6], [0, 0, 0, 0]),
    ([1, 3], [6, 7], [0, 8]),
  ],
)
def test_stretches_are_cut_out(shape, slots, starts, begins):
  length, end = 4, 9
  filled, moments = _fill(10, shape)
  cuts = filled.cut(
    np.array(slots), np.array(starts), length, np.array(begins), end
  )
  for leaf, cut in enumerate(cuts):
    assert cut.shape[:2] == (len(slots), length)
    for k, slot in enumerate(slots):
      for i in range(length):
        time = starts[k] + i
        expected = np.zeros(shape if leaf else ())
        if begins[k] <= time < end:
          expected = moments[time][leaf][slot]
        np.testing.assert_array_equal(cut[k, i], expected)


def test_one_slot_does_not_cost_what_all_do():
  filled = rings.Rings(20)
  for time in range(20):
    filled.write(time, [np.ones([64, 10_000], np.uint8)])
  tracemalloc.start()
  try:
    filled.cut(np.array([3]), np.array([0]), 20, np.array([0]), 20)
    peak = tracemalloc.get_traced_memory()[1]
  finally:
    tracemalloc.stop()
  assert peak < 2 * 20 * 10_000
