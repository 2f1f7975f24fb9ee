"""Nests of arrays, and the records that travel between parts.

Every array has a leading batch axis `[B]` unless its docstring says otherwise.
"""

from typing import Any, NamedTuple, TypeAlias

# A `np.ndarray` or a `tf.Tensor`: the same records serve both worlds.
Array: TypeAlias = Any

# A (possibly nested) structure of arrays, as `dm-tree` understands it: lists,
# tuples, named tuples, dictionaries, or a single array. Its structure is data,
# which type checkers cannot follow; docstrings tell structures and shapes.
Nest: TypeAlias = Any


class Transition(NamedTuple):
  """One n-step transition, or a batch of them.

  Attributes:
    observation: o_t, `[B, ...]`.
    action: a_t, `[B, ...]`.
    reward: Discounted sum of the rewards inside the transition,
      Σ_i γ^i r_{t+i+1} Π_{j<i} d_{t+j+1}, `[B]`.
    discount: Product of the discounts inside it, γ^(k-1) Π_j d_{t+j+1} for k
      steps, `[B]`. It lacks one factor γ: the learner applies that when it
      bootstraps.
    next_observation: o_{t+k}, `[B, ...]`.
    extras: What the policy gave with the first action, `[B, ...]`.
  """

  observation: Nest
  action: Nest
  reward: Array
  discount: Array
  next_observation: Nest
  extras: Nest = ()


class Sample(NamedTuple):
  """A batch of items drawn from a replay table.

  Attributes:
    data: The items, each leaf `[B, ...]`.
    keys: Which items these are, to give their new priorities to, uint64 `[B]`.
    probabilities: With which each was drawn, float64 `[B]`.
    table_sizes: Items in the table when each was drawn, int64 `[B]`.
  """

  data: Nest
  keys: Array
  probabilities: Array
  table_sizes: Array
