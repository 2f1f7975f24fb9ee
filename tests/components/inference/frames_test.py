"""Tests of `components/inference/frames.py`."""

import struct

import numpy as np
from absl.testing import absltest, parameterized

from repertory.components.inference import frames

LEAVES = [
  ((), np.dtype(np.int32)),
  ((3,), np.dtype(np.uint8)),
  ((2, 5), np.dtype(np.float64)),
  ((0,), np.dtype(np.float32)),
  ((), np.dtype(bool)),
]


class HeaderTest(parameterized.TestCase):
  @parameterized.parameters(
    (frames.HELLO, 0, 0.0, 0.0),
    (frames.STEP, 2**32 - 1, 0.25, 0.25),
    # Whole microseconds travel, and at most 2³² − 1 of them.
    (frames.REFUSED, 7, 1.2345678, 1.234567),
    (frames.ACTION, 1, 1e9, 4294.967295),
  )
  def test_round_trip(self, kind, size, seconds, expected):
    data = frames.header(kind, size, seconds)
    self.assertLen(data, frames.HEADER_SIZE)
    found_kind, found_size, found_seconds = frames.parse_header(data)
    self.assertEqual((found_kind, found_size), (kind, size))
    self.assertAlmostEqual(found_seconds, expected, places=9)

  def test_bytes(self):
    # Little-endian; actors of another build must agree.
    self.assertEqual(
      frames.header(4, 258, 3e-6),
      b'rprt\x04\0\0\0\x02\x01\0\0\x03\0\0\0',
    )

  def test_views_of_a_buffer_are_headers(self):
    buffer = frames.make_buffer(5)
    buffer[: frames.HEADER_SIZE] = frames.header(frames.BYE, 5)
    self.assertEqual(
      frames.parse_header(buffer[: frames.HEADER_SIZE])[:2], (frames.BYE, 5)
    )

  @parameterized.parameters(b'GET / HTTP/1.1\r\n', b'\0' * 16, b'Rprt' * 4)
  def test_bad_magic(self, data):
    with self.assertRaisesRegex(frames.ProtocolError, 'another protocol') as it:
      frames.parse_header(data)
    self.assertIn(repr(data[:4]), str(it.exception))

  def test_kinds_differ(self):
    kinds = [
      *(frames.HELLO, frames.START, frames.STEP, frames.BYE),
      *(frames.WELCOME, frames.ACTION, frames.GOODBYE, frames.REFUSED),
    ]
    self.assertLen(set(kinds), len(kinds))


class JsonTest(parameterized.TestCase):
  def test_round_trip(self):
    message = {'actor': 'ä/1\n', 'environment_ids': [0, 3], 'nested': {'a': []}}
    data = frames.pack_json(frames.HELLO, message)
    kind, size, _ = frames.parse_header(data[: frames.HEADER_SIZE])
    payload = data[frames.HEADER_SIZE :]
    self.assertEqual((kind, size), (frames.HELLO, len(payload)))
    self.assertEqual(frames.parse_json(memoryview(payload)), message)

  @parameterized.parameters(
    (b'', 'must be JSON'),
    (b'{"a": 1', 'must be JSON'),
    (b'\xff\xfe\xfd', 'must be JSON'),
    (b'{} {}', 'must be JSON'),
    (b'[1]', r'JSON object, got \[1\]'),
    (b'null', 'JSON object, got None'),
  )
  def test_errors(self, payload, message):
    with self.assertRaisesRegex(frames.ProtocolError, message):
      frames.parse_json(payload)

  def test_nesting_is_refused(self):
    with self.assertRaisesRegex(frames.ProtocolError, 'JSON'):
      frames.parse_json(b'[' * 100_000)

  def test_description_tells_specs_apart(self):
    self.assertEqual(
      frames.describe([((2, 3), np.dtype(np.float32)), ((), np.int64)]),
      [[[2, 3], '<f4'], [[], '<i8']],
    )


class LayoutTest(parameterized.TestCase):
  @parameterized.parameters(1, 3, 64)
  def test_views_are_aligned_disjoint_and_inside(self, batch_size):
    layout = frames.Layout(LEAVES, batch_size)
    buffer = frames.make_buffer(layout.size)
    self.assertLen(buffer, frames.HEADER_SIZE + layout.size)
    buffer[: frames.HEADER_SIZE] = frames.header(frames.STEP, layout.size)
    views = layout.views(buffer[frames.HEADER_SIZE :])
    for number, (view, (shape, dtype)) in enumerate(zip(views, LEAVES)):
      self.assertEqual(view.shape, (batch_size, *shape))
      self.assertEqual(view.dtype, dtype)
      self.assertTrue(view.flags.writeable)
      self.assertEqual(view.ctypes.data % 64, 0)
      view[...] = number + 1
    for number, view in enumerate(views):  # None has overwritten another.
      np.testing.assert_array_equal(view, np.full_like(view, number + 1))
    kind, size, _ = frames.parse_header(buffer[: frames.HEADER_SIZE])
    self.assertEqual((kind, size), (frames.STEP, layout.size))

  def test_size(self):
    # 4, 24, 80·2, 0 and 1 bytes a row, each leaf in whole blocks of 64.
    self.assertEqual(frames.Layout(LEAVES, 1).size, 64 + 64 + 128 + 0 + 64)
    self.assertEqual(frames.Layout(LEAVES, 17).size, 128 + 64 + 1408 + 0 + 64)
    self.assertEqual(frames.Layout([], 3).size, 0)

  def test_views_share_memory(self):
    layout = frames.Layout([((), np.dtype(np.int32))], 2)
    payload = bytearray(layout.size)
    (view,) = layout.views(payload)
    payload[4:8] = struct.pack('<i', -5)
    self.assertEqual(view.tolist(), [0, -5])

  @parameterized.parameters(0, 1, 63, 64, 1000)
  def test_buffer(self, size):
    buffer = frames.make_buffer(size)
    self.assertLen(buffer, frames.HEADER_SIZE + size)
    self.assertEqual(bytes(buffer), bytes(frames.HEADER_SIZE + size))
    start = np.frombuffer(buffer, np.uint8).ctypes.data
    self.assertEqual((start + frames.HEADER_SIZE) % 64, 0)

  def test_frame(self):
    frame, leaves = frames.make_frame(LEAVES, 2)
    leaves[0][:] = [1, 2]
    layout = frames.Layout(LEAVES, 2)
    self.assertEqual(
      layout.views(frame[frames.HEADER_SIZE :])[0].tolist(), [1, 2]
    )


if __name__ == '__main__':
  absltest.main()
