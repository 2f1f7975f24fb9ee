"""Tests of the packing of items."""

import numpy as np
import tensorflow as tf
import tree

from repertory.components import replay

# One leaf of each kind of dtype; 'image' is too large to be packed.
SIGNATURE = {
  'bool': tf.TensorSpec([3], tf.bool),
  'double': tf.TensorSpec([], tf.float64),
  'empty': tf.TensorSpec([0], tf.float32),
  'half': tf.TensorSpec([2], tf.float16),
  'image': tf.TensorSpec([40, 40], tf.uint8),
  'int8': tf.TensorSpec([2, 2], tf.int8),
  'matrix': tf.TensorSpec([2, 3], tf.float32),
  'nothing': (),
  'uint64': tf.TensorSpec([], tf.uint64),
  'uint8': tf.TensorSpec([5], tf.uint8),
}
NUM_BYTES = 3 + 8 + 0 + 4 + 4 + 24 + 8 + 5


def _random_leaves(count):
  random = np.random.default_rng(0)
  return [
    random.integers(0, 256, [count, *spec.shape, spec.dtype.size], np.uint8)
    .view(spec.dtype.as_numpy_dtype)
    .reshape([count, *spec.shape])
    if spec.dtype != tf.bool
    else random.integers(0, 2, [count, *spec.shape]).astype(bool)
    for spec in tree.flatten(SIGNATURE)
  ]


def _columns(packing, leaves):
  return [packing.pack(leaves), *(leaves[i] for i in packing.whole)]


def _assert_same(found, expected):
  """Bit by bit, because random bytes may be NaN."""
  tree.assert_same_structure(found, SIGNATURE)
  for a, b in zip(tree.flatten(found), expected, strict=True):
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert np.asarray(a).tobytes() == b.tobytes()


def test_batch_of_unknown_size_comes_back():
  packing = replay.Packing(SIGNATURE)
  leaves = _random_leaves(3)
  unpack = tf.function(
    packing.unpack,
    input_signature=[
      [
        tf.TensorSpec([None, *spec.shape], spec.dtype)
        for spec in packing.stored_signature
      ]
    ],
  )
  found = unpack(list(map(tf.constant, _columns(packing, leaves))))
  _assert_same(tree.map_structure(lambda leaf: leaf.numpy(), found), leaves)


def test_bundles_come_back():
  packing = replay.Packing(SIGNATURE, bundle_size=3)
  assert packing.stored_signature == [
    tf.TensorSpec([3 * NUM_BYTES], tf.uint8, 'packed'),
    tf.TensorSpec([3, 40, 40], tf.uint8),
  ]
  leaves = _random_leaves(6)
  columns = packing.bundle(leaves)
  for column, spec in zip(columns, packing.stored_signature, strict=True):
    assert (column.shape, column.dtype) == ((2, *spec.shape), spec.dtype)
  found = packing.unpack(list(map(tf.constant, columns)))
  _assert_same(tree.map_structure(lambda leaf: leaf.numpy(), found), leaves)
  second = packing.unpack([tf.constant(column[1:]) for column in columns])
  second = tree.map_structure(lambda leaf: leaf.numpy(), second)
  _assert_same(second, [leaf[3:] for leaf in leaves])


def test_all_may_be_large():
  signature = [tf.TensorSpec([1025], tf.uint8), tf.TensorSpec([], tf.string)]
  packing = replay.Packing(signature)
  assert packing.stored_signature == signature
  leaves = [np.ones([2, 1025], np.uint8), np.array(['a', 'b'], object)]
  assert packing.pack(leaves).size == 0
  assert packing.unpack(leaves) == leaves
