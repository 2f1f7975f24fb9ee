"""Packing of small leaves of items into one column of a table."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
import tree

from repertory.components import types

# Larger leaves cost more to copy than to store separately, and transitions
# share them with their neighbors.
_MAX_PACKED_BYTES = 1024


class Packing:
  """Packs the small leaves of an item into one column of bytes.

  Writing a column costs Reverb about 40 µs of a core, whatever its size. Large
  leaves, such as images, have columns of their own. Several items may share
  their columns, as a *bundle*, which Reverb counts and samples as one item.

  Attributes:
    packed: Indices of the small leaves, in the order of `tree.flatten`.
    whole: Indices of the other leaves.
    images: Those of them that servers compress: uint8 of 2 or more dimensions.
    stacks: Number of frames of those that are frame stacks. Tables in this
      process store frames; for servers, compressing whole stacks saves as much.
    shapes: Shape of each leaf in one item.
    dtypes: Dtype of each leaf.
    record_bytes: Bytes of the packed leaves of an item.
  """

  def __init__(
    self,
    signature: types.Nest,
    bundle_size: int = 1,
    num_frames: Sequence[int] = (),
  ):
    """Assigns each leaf of an item to a column; see `TableSpec`."""
    self._signature = signature
    self._bundle_size = bundle_size
    self._specs = tree.flatten(signature)
    self.shapes = [tuple(spec.shape.as_list()) for spec in self._specs]
    self.dtypes = [np.dtype(spec.dtype.as_numpy_dtype) for spec in self._specs]
    self.packed = [i for i in range(len(self._specs)) if self._is_small(i)]
    packed = set(self.packed)
    self.whole = [i for i in range(len(self._specs)) if i not in packed]
    self.images = {
      i
      for i in self.whole
      if self.dtypes[i] == np.uint8 and len(self.shapes[i]) >= 2
    }
    self.stacks = {
      i: num_frames[i] for i in self.whole if num_frames and num_frames[i] > 1
    }
    self._record = np.dtype(
      [(str(i), self.dtypes[i], self.shapes[i]) for i in self.packed]
    )
    self.record_bytes = self._record.itemsize

  @property
  def stored_signature(self) -> list[tf.TensorSpec]:
    """The columns: the bytes of all packed leaves, then the other leaves."""
    columns = [self._specs[i] for i in self.whole]
    size = self._bundle_size
    if size > 1:
      columns = [
        tf.TensorSpec([size, *spec.shape], spec.dtype, spec.name)
        for spec in columns
      ]
    if self.packed:
      num_bytes = size * self.record_bytes
      records = tf.TensorSpec([num_bytes], tf.uint8, 'packed')
      columns.insert(0, records)
    return columns

  def bundle(self, leaves: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Maps leaves `[K, ...]` to columns of bundles `[K / bundle_size, ...]`.

    Raises a ValueError if the items do not fill their bundles, and as `pack`.
    """
    size = self._bundle_size
    columns = [np.asarray(leaves[i]) for i in self.whole]
    if size > 1:
      columns = [x.reshape(-1, size, *x.shape[1:]) for x in columns]
    if self.packed:
      records = self.pack(leaves)
      columns.insert(0, records.reshape(-1, size * self.record_bytes))
    return columns

  def pack(self, leaves: Sequence) -> np.ndarray:
    """Packs the small ones of leaves `[K, ...]` to uint8 `[K, bytes]`.

    Raises:
      ValueError: If the shape or dtype of a small leaf differs from the
        signature.
    """
    count = len(leaves[self.packed[0]]) if self.packed else 0
    records = np.empty([count], self._record)
    for i in self.packed:
      self.check(i, leaves[i])
      records[str(i)] = leaves[i]
    return records.view(np.uint8).reshape(count, self.record_bytes)

  def open(self, records: np.ndarray) -> dict[int, np.ndarray]:
    """Returns views of the packed leaves `[K, ...]` of uint8 `[K, bytes]`."""
    if not self.packed:
      return {}
    leaves = records.reshape(-1).view(self._record)
    return {i: leaves[str(i)] for i in self.packed}

  def unpack(self, columns: Sequence[tf.Tensor]) -> types.Nest:
    """Maps columns `[B / bundle_size, ...]` to a nest of leaves `[B, ...]`."""
    columns = list(columns)
    leaves: list = [None] * len(self._specs)
    if self.packed:
      records = self._open_bundles(columns.pop(0), (self.record_bytes,))
      sizes = [self._record[str(i)].itemsize for i in self.packed]
      pieces = tf.split(records, sizes, axis=1)
      for i, piece in zip(self.packed, pieces):
        leaves[i] = self._restore(i, piece)
    for i, column in zip(self.whole, columns):
      leaves[i] = self._open_bundles(column, self.shapes[i])
    return tree.unflatten_as(self._signature, leaves)

  def _is_small(self, index: int) -> bool:
    if self.dtypes[index].hasobject or None in self.shapes[index]:
      return False
    return num_bytes(self._specs[index]) <= _MAX_PACKED_BYTES

  def _open_bundles(self, column: tf.Tensor, shape: Sequence) -> tf.Tensor:
    """Splits bundles of items of a shape into items."""
    size = self._bundle_size
    if size == 1:
      return column
    count = column.shape[0] * size if column.shape[0] else -1
    return tf.reshape(column, [count, *shape])

  def _restore(self, index: int, piece: tf.Tensor) -> tf.Tensor:
    """Maps bytes `[B, n]` to a leaf `[B, ...]`."""
    spec, size = self._specs[index], self.dtypes[index].itemsize
    batch = piece.shape[0] or tf.shape(piece)[0]
    if size == 1:
      piece = tf.reshape(piece, [batch, *self.shapes[index]])
      if spec.dtype == tf.bool:  # `bitcast` does not support bool.
        return tf.cast(piece, tf.bool)
      return tf.bitcast(piece, spec.dtype)
    piece = tf.reshape(piece, [batch, *self.shapes[index], size])
    return tf.bitcast(piece, spec.dtype)

  def check(self, index: int, leaf: np.ndarray) -> None:
    """Raises a ValueError if a leaf `[K, ...]` does not fit the signature."""
    shape, dtype = self.shapes[index], self.dtypes[index]
    if leaf.dtype == dtype and leaf.shape[1:] == shape:
      return
    path = tree.flatten_with_path(self._signature)[index][0]
    name = '/'.join(str(part) for part in path)
    raise ValueError(
      f"'{name}' must be {dtype} of shape {shape} in each item, as in the "
      f'signature of the table; got {leaf.dtype} of shape {leaf.shape[1:]}.'
    )


def num_bytes(spec: tf.TensorSpec) -> int:
  """Returns the bytes of an array of known shape."""
  return spec.dtype.size * spec.shape.num_elements()
