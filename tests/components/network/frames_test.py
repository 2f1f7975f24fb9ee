"""Tests of `components/network/frames.py`."""

import numpy as np
import pytest

from repertory.components.network import frames

_KIND = 3

LEAVES = [
  ((), np.dtype(np.int32)),
  ((3,), np.dtype(np.uint8)),
  ((2, 5), np.dtype(np.float64)),
  ((0,), np.dtype(np.float32)),
  ((), np.dtype(bool)),
]


def test_header():
  # Little-endian; actors of another build must agree.
  data = frames.header(4, 258, 3e-6)
  assert data == b'rprt\x04\0\0\0\x02\x01\0\0\x03\0\0\0'
  assert frames.parse_header(data) == (4, 258, pytest.approx(3e-6))
  # At most 2³² − 1 microseconds.
  assert frames.parse_header(frames.header(1, 0, 1e9))[2] < 4295


@pytest.mark.parametrize(
  # 4, 24, 80·2, 0 and 1 bytes a row, each leaf in whole blocks of 64.
  ('batch_size', 'size'),
  [(1, 64 + 64 + 128 + 0 + 64), (17, 128 + 64 + 1408 + 0 + 64)],
)
def test_views_are_aligned_disjoint_and_inside(batch_size, size):
  frame, views = frames.make_frame(LEAVES, batch_size)
  assert len(frame) == frames.HEADER_SIZE + size
  frame[: frames.HEADER_SIZE] = frames.header(_KIND, size)
  for number, (view, (shape, dtype)) in enumerate(zip(views, LEAVES)):
    assert view.shape == (batch_size, *shape)
    assert view.dtype == dtype
    assert view.ctypes.data % 64 == 0
    view[...] = number + 1
  for number, view in enumerate(views):  # None has overwritten another.
    np.testing.assert_array_equal(view, np.full_like(view, number + 1))
  kind, found, _ = frames.parse_header(frame[: frames.HEADER_SIZE])
  assert (kind, found) == (_KIND, size)
