"""Nests of arrays, and the records exchanged between components.

Every array has a leading batch axis `[B]` unless its docstring says otherwise.
"""

from typing import Any, NamedTuple, TypeAlias

# A `np.ndarray` or a `tf.Tensor`: the records hold either.
Array: TypeAlias = Any

# A (possibly nested) structure of arrays, as `dm-tree` understands it: lists,
# tuples, named tuples, dictionaries, or a single array. Type checkers cannot
# follow its structure; docstrings describe structures and shapes.
Nest: TypeAlias = Any


class Transition(NamedTuple):
  """One n-step transition, or a batch of them.

  Attributes:
    observation: o_t, `[B, ...]`.
    action: a_t, `[B, ...]`.
    reward: Discounted sum of the rewards inside the transition, Σ_i γ^i
      r_{t+i+1} Π_{j<i} d_{t+j+1}, `[B]`.
    discount: Product of the discounts inside it, γ^(k-1) Π_j d_{t+j+1} for k
      steps, `[B]`. It lacks one factor γ: the learner applies that when it
      bootstraps.
    next_observation: o_{t+k}, `[B, ...]`.
    extras: The policy's extras of the first action, `[B, ...]`.
  """

  observation: Nest
  action: Nest
  reward: Array
  discount: Array
  next_observation: Nest
  extras: Nest = ()


class SequenceExtras(NamedTuple):
  """Policy extras for sequences.

  Attributes:
    step: Stored for every step, such as the log-probability of the action, `[B,
      ...]`.
    state: The recurrent state before the observation, stored for the first step
      of an item, `[B, ...]`.
  """

  step: Nest = ()
  state: Nest = ()


class Sequence(NamedTuple):
  """T steps and the T + 1 observations around them, or a batch of such.

  Steps outside the recorded ones are padding: zeros.

  Attributes:
    observation: o_0 … o_T, `[B, T + 1, ...]`.
    first: Whether an observation is the first of an episode, bool `[B, T + 1]`.
    action: a_t taken at o_t, `[B, T, ...]`.
    reward: r_{t+1} that followed, `[B, T]`.
    discount: d_{t+1} of the environment, without γ, `[B, T]`: 0 where o_{t+1}
      terminates the episode, 1 where it truncates it.
    mask: Whether step t happened, bool `[B, T]`. It is false in the padding,
      and between the last observation of an episode and the first of the next.
    extras: `SequenceExtras.step` of each step, `[B, T, ...]`.
    state: `SequenceExtras.state` before the item's first observation, `[B,
      ...]`; zeros where that one ends an episode.
    version: Learner steps of the variables that chose the item's first action,
      int64 `[B]`.
  """

  observation: Nest
  first: Array
  action: Nest
  reward: Array
  discount: Array
  mask: Array
  extras: Nest
  state: Nest
  version: Array


class SampleWithTargets(NamedTuple):
  """An item with a target from a Bellman updater, or a batch of them.

  Attributes:
    data: Inputs of the value function, such as observation and action, `[B,
      ...]`.
    target: The value's target, `[B, ...]`.
    version: Learner steps of the variables that the target was computed with,
      int64 `[B]`.
  """

  data: Nest
  target: Nest
  version: Array


class Sample(NamedTuple):
  """A batch of items sampled from a replay table.

  Attributes:
    data: The items, each leaf `[B, ...]`.
    keys: Keys of the items, for priority updates, uint64 `[B]`.
    probabilities: Sampling probability of each, float64 `[B]`.
    table_sizes: Items in the table when each was sampled, int64 `[B]`.
    is_demonstration: Whether each item is a demonstration, bool `[B]`; `()` if
      no batch has demonstrations.
  """

  data: Nest
  keys: Array
  probabilities: Array
  table_sizes: Array
  is_demonstration: Array = ()
