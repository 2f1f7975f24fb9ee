"""A writer that records items."""

import collections
import dataclasses

import numpy as np
import tree

from repertory.components import replay
from repertory.components.replay import local


@dataclasses.dataclass
class _Reference:
  """Reference to recorded data, by index and generation of the writer."""

  leaf: np.ndarray
  generation: int
  index: int
  number: int


class RecordingWriter(replay.Writer):
  """Records all items, and checks them against the table's signature.

  Leaves must have the signature's shape and dtype, and references must not have
  been discarded.
  """

  def __init__(self, signature, shared=(), **settings):
    """Starts without items."""
    table = replay.queue(signature, 100_000)
    super().__init__(local.WaitPolicy(1.0), table, **settings)
    self._shared = list(shared)
    self.items, self.priorities, self.puts = [], [], []
    self._specs = tree.flatten(signature)
    self._generation, self._num_kept = 0, collections.Counter()

  @property
  def shared(self):
    return self._shared

  def open(self, num_alive):
    self._num_alive = num_alive

  def keep(self, leaves):
    kept = {}
    for i, leaf in leaves.items():
      kept[i] = np.empty([len(leaf)], object)
      for slot, array in enumerate(leaf):
        number = self._num_kept[i] + slot
        array = np.array(array)
        kept[i][slot] = _Reference(array, self._generation, i, number)
      self._num_kept[i] += len(leaf)
    return kept

  def put(self, leaves):
    count = len(leaves[0])
    for k in range(count):
      item = [self._follow(leaf[k]) for leaf in leaves]
      for leaf, spec in zip(item, self._specs, strict=True):
        found = (leaf.dtype, leaf.shape)
        if found != (spec.dtype.as_numpy_dtype, tuple(spec.shape)):
          raise ValueError(f'A leaf must be as {spec}; got {found}.')
      item = [np.array(leaf) for leaf in item]
      self.priorities.append(self._next_priority())
      self.items.append(tree.unflatten_as(self.table.signature, item))
      self.num_items += 1
    self.puts.append(count)

  def _follow(self, reference):
    if not isinstance(reference, _Reference):
      return reference
    assert reference.generation == self._generation
    num_later = self._num_kept[reference.index] - reference.number
    assert num_later <= self._num_alive
    return reference.leaf

  def _try_to_drain(self, num_pending, seconds):
    return True

  def _close(self):
    self._generation += 1

  def _ask(self):
    raise NotImplementedError
