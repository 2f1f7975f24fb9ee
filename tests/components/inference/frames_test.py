"""Tests of `components/inference/frames.py`."""

import numpy as np
import pytest

from repertory.components.inference import frames

LEAVES = [
  ((), np.dtype(np.int32)),
  ((3,), np.dtype(np.uint8)),
  ((2, 5), np.dtype(np.float64)),
  ((0,), np.dtype(np.float32)),
  ((), np.dtype(bool)),
]


class TestHeader:
  @pytest.mark.parametrize(
    ('kind', 'size', 'seconds', 'expected'),
    [
      (frames.HELLO, 0, 0.0, 0.0),
      (frames.STEP, 2**32 - 1, 0.25, 0.25),
      # Whole microseconds travel, and at most 2³² − 1 of them.
      (frames.REFUSED, 7, 1.2345678, 1.234567),
      (frames.ACTION, 1, 1e9, 4294.967295),
    ],
  )
  def test_round_trip(self, kind, size, seconds, expected):
    data = frames.header(kind, size, seconds)
    assert len(data) == frames.HEADER_SIZE
    found_kind, found_size, found_seconds = frames.parse_header(data)
    assert (found_kind, found_size) == (kind, size)
    assert found_seconds == pytest.approx(expected, abs=5e-10)

  def test_bytes(self):
    # Little-endian; actors of another build must agree.
    assert (
      frames.header(4, 258, 3e-6) == b'rprt\x04\0\0\0\x02\x01\0\0\x03\0\0\0'
    )


@pytest.mark.parametrize(
  # 4, 24, 80·2, 0 and 1 bytes a row, each leaf in whole blocks of 64.
  ('batch_size', 'size'),
  [(1, 64 + 64 + 128 + 0 + 64), (17, 128 + 64 + 1408 + 0 + 64)],
)
def test_views_are_aligned_disjoint_and_inside(batch_size, size):
  frame, views = frames.make_frame(LEAVES, batch_size)
  assert len(frame) == frames.HEADER_SIZE + size
  frame[: frames.HEADER_SIZE] = frames.header(frames.STEP, size)
  for number, (view, (shape, dtype)) in enumerate(zip(views, LEAVES)):
    assert view.shape == (batch_size, *shape)
    assert view.dtype == dtype
    assert view.ctypes.data % 64 == 0
    view[...] = number + 1
  for number, view in enumerate(views):  # None has overwritten another.
    np.testing.assert_array_equal(view, np.full_like(view, number + 1))
  kind, found, _ = frames.parse_header(frame[: frames.HEADER_SIZE])
  assert (kind, found) == (frames.STEP, size)
