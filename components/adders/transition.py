"""n-step transitions."""

import collections
import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import dm_env
import numpy as np
import tree

from repertory.components import specs, types
from repertory.components.adders import reverb_adder

Leaves = Sequence[np.ndarray]


class _Start(NamedTuple):
  """References to the columns of the step where a transition starts."""

  observation: list
  action: list
  extras: list


@dataclasses.dataclass
class _Slot:
  """An open episode.

  `starts`, `rewards` and `discounts` are of the steps for which no transition
  has been made, at most n. `waiting` is a transition that lacks its next
  observation, which is appended once, as the observation of the step to come.
  """

  observation: Leaves = ()
  starts: collections.deque = dataclasses.field(
    default_factory=collections.deque
  )
  rewards: collections.deque = dataclasses.field(
    default_factory=collections.deque
  )
  discounts: collections.deque = dataclasses.field(
    default_factory=collections.deque
  )
  waiting: tuple[_Start, list] | None = None


class TransitionAdder(reverb_adder.ReverbAdder):
  """Adds n-step transitions (o_t, a_t, Σ, Πd, o_{t+n}, extras_t).

  There is one for each step. In the last n − 1 steps of an episode they reach
  to its end and are shorter. γ is applied between the rewards inside a
  transition; the learner applies it once more before it bootstraps. A
  transition that ends in mid-episode is written one step after it is complete,
  so that its last observation is stored once and not twice.
  """

  def __init__(
    self,
    destination: reverb_adder.Destination,
    batch_size: int,
    *,
    n_step: int,
    discount: float,
  ):
    """Opens the writer.

    Args:
      destination: Where the transitions go; the signature of the table is
        `signature`'s.
      batch_size: B, slots of the environment batch.
      n_step: n, steps a transition spans, at least 1.
      discount: γ, in [0, 1].
    """
    if n_step < 1:
      raise ValueError(f'n_step must be at least 1, got {n_step}.')
    if not 0 <= discount <= 1:
      raise ValueError(f'discount must be in [0, 1], got {discount}.')
    super().__init__(
      destination,
      batch_size,
      # A step appends at most an observation and, when it is the last, another
      # and n − 1 rewards; a start is referred to for n + 1 steps.
      num_steps_alive=3 * n_step + 4,
    )
    self._n_step = n_step
    self._discount = discount
    self._slots = [_Slot() for _ in range(batch_size)]

  def add_first(self, timestep: dm_env.TimeStep) -> None:
    observations = _rows(timestep.observation, self._batch_size)
    self._slots = [_Slot(observation=row) for row in observations]

  def reset(self) -> None:
    super().reset()
    self._slots = [_Slot() for _ in self._slots]

  def _add(
    self, action: types.Nest, next_timestep: dm_env.TimeStep, extras: types.Nest
  ) -> None:
    actions = _rows(action, self._batch_size)
    observations = _rows(next_timestep.observation, self._batch_size)
    extras_rows = _rows(extras, self._batch_size)
    for slot, step_type in enumerate(next_timestep.step_type):
      if step_type == dm_env.StepType.FIRST:
        self._slots[slot] = _Slot(observation=observations[slot])
      else:
        self._step(
          self._slots[slot],
          actions[slot],
          extras_rows[slot],
          next_timestep.reward[slot],
          next_timestep.discount[slot],
          observations[slot],
          last=step_type == dm_env.StepType.LAST,
        )

  def _step(
    self,
    episode: _Slot,
    action: Leaves,
    extras: Leaves,
    reward: np.ndarray,
    discount: np.ndarray,
    next_observation: Leaves,
    last: bool,
  ) -> None:
    """Goes on with an episode, and ends it if `last`."""
    episode.rewards.append(reward)
    episode.discounts.append(discount)
    is_full = len(episode.rewards) == self._n_step
    outcome = self._outcome(episode) if is_full else [None, None]
    refs = self._append([*episode.observation, *action, *extras, *outcome])
    start = _Start(
      observation=refs[: len(next_observation)],
      action=refs[len(next_observation) : -2 - len(extras)],
      extras=refs[-2 - len(extras) : -2],
    )
    if episode.waiting:
      self._write(*episode.waiting, start.observation)
      episode.waiting = None
    episode.starts.append(start)
    episode.observation = next_observation
    if is_full:
      episode.waiting = (_pop_start(episode), refs[-2:])
    if last:
      self._end(episode, len(refs))

  def _end(self, episode: _Slot, num_columns: int) -> None:
    """Writes the transitions that reach to the end of the episode."""
    size = len(episode.observation)
    missing = [None] * (num_columns - size)
    final = self._append([*episode.observation, *missing])[:size]
    if episode.waiting:
      self._write(*episode.waiting, final)
      episode.waiting = None
    missing = [None] * (num_columns - 2)
    while episode.starts:
      outcome = self._append([*missing, *self._outcome(episode)])[-2:]
      self._write(_pop_start(episode), outcome, final)

  def _outcome(self, episode: _Slot) -> list[np.ndarray]:
    """Returns Σ_i γ^i r_i Π_{j<i} d_j and γ^(k-1) Π_j d_j of the open steps."""
    rewards, discounts = episode.rewards, episode.discounts
    total, product = rewards[0], discounts[0]
    for i in range(1, len(rewards)):
      product = product * self._discount
      total = total + product * rewards[i]
      product = product * discounts[i]
    return [
      np.asarray(total, rewards[0].dtype),
      np.asarray(product, discounts[0].dtype),
    ]

  def _write(
    self, start: _Start, outcome: list, next_observation: list
  ) -> None:
    """Writes a transition, its leaves in the order of `types.Transition`."""
    self._create_item(
      [
        *start.observation,
        *start.action,
        *outcome,
        *next_observation,
        *start.extras,
      ]
    )


def _rows(nest: types.Nest, batch_size: int) -> list[Leaves]:
  """Splits a nest `[B, ...]` into the leaves of each row."""
  leaves = tree.flatten(nest)
  return [[leaf[row] for leaf in leaves] for row in range(batch_size)]


def _pop_start(episode: _Slot) -> _Start:
  episode.rewards.popleft()
  episode.discounts.popleft()
  return episode.starts.popleft()


def signature(
  spec: specs.EnvironmentSpec, extras_spec: types.Nest = ()
) -> types.Transition:
  """Returns the `tf.TensorSpec`s of one transition, for its table.

  Args:
    spec: Of the environment.
    extras_spec: Nest of array specs of what the policy gives for replay.
  """
  return specs.tensor_spec(
    types.Transition(
      observation=spec.observations,
      action=spec.actions,
      reward=spec.rewards,
      discount=spec.discounts,
      next_observation=spec.observations,
      extras=extras_spec,
    )
  )
