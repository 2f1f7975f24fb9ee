"""A writer that records items."""

import dataclasses

import numpy as np
import tree

from repertory.components import replay
from repertory.components.replay import local
from support.replay import replay_fixture


@dataclasses.dataclass
class _Reference:
  """Reference to recorded data, by index and generation of the writer."""

  leaf: np.ndarray
  generation: int
  number: int


class RecordingWriter(replay.Writer):
  """Records all items, and checks them against the table's signature.

  Leaves must have the signature's shape and dtype, and references must not have
  been discarded.
  """

  def __init__(self, signature, shared=(), **settings):
    """Starts without items."""
    table = replay_fixture.make_fifo(signature)
    super().__init__(table, local.WaitPolicy(1.0), **settings)
    self._shared = list(shared)
    self.items, self.priorities, self.puts = [], [], []
    self._specs = tree.flatten(signature)
    self._generation = self._num_kept = 0

  @property
  def shared(self):
    return self._shared

  def open(self, num_alive):
    self._num_alive = num_alive

  def keep(self, leaves):
    self._num_kept += 1
    return [
      None
      if leaf is None
      else _Reference(np.array(leaf), self._generation, self._num_kept)
      for leaf in leaves
    ]

  def put(self, leaves, references=None):
    shared = [] if references is None else self._shared
    own = [i for i in range(len(self._specs)) if i not in shared]
    count = len(leaves[own[0]])
    assert references is None or len(references) == count
    for k in range(count):
      item = {i: leaves[i][k] for i in own}
      if references is not None:
        item.update(zip(shared, map(self._follow, references[k]), strict=True))
      for i, spec in enumerate(self._specs):
        found = (item[i].dtype, item[i].shape)
        if found != (spec.dtype.as_numpy_dtype, tuple(spec.shape)):
          raise ValueError(f'A leaf must be as {spec}; got {found}.')
      ordered = [np.array(item[i]) for i in range(len(self._specs))]
      self.priorities.append(self._next_priority())
      self.items.append(tree.unflatten_as(self.table.signature, ordered))
      self.num_items += 1
    self.puts.append(count)

  def _follow(self, reference):
    assert reference.generation == self._generation
    assert self._num_kept - reference.number < self._num_alive
    return reference.leaf

  def _try_to_drain(self, num_pending, seconds):
    return True

  def _close(self):
    self._generation += 1

  def _ask(self):
    raise NotImplementedError
