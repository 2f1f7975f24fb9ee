"""n-step transitions."""

import collections
import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from repertory.components import specs, types
from repertory.components.adders import reverb_adder
from repertory.components.replay import connection as connection_lib


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

  observation: reverb_adder.Leaves = ()
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
    connection: connection_lib.Connection,
    table: str,
    *,
    batch_size: int,
    n_step: int,
    discount: float,
    priority: Callable[[], float] = lambda: 1.0,
    max_pending_items: int = 0,
  ):
    """Opens the writer.

    Args:
      connection: To the replay server.
      table: Where the transitions go; its signature is `signature`'s.
      batch_size: B, slots of the environment batch.
      n_step: n, steps a transition spans, at least 1.
      discount: γ, in [0, 1].
      priority: Gives the priority of a new item.
      max_pending_items: Items that may be on their way to the server when
        `add` returns.
    """
    if n_step < 1:
      raise ValueError(f'n_step must be at least 1, got {n_step}.')
    if not 0 <= discount <= 1:
      raise ValueError(f'discount must be in [0, 1], got {discount}.')
    super().__init__(
      connection,
      table,
      batch_size=batch_size,
      # A step appends at most an observation and, when it is the last, another
      # and n − 1 rewards; a start is referred to for n + 1 steps.
      num_steps_alive=3 * n_step + 4,
      priority=priority,
      max_pending_items=max_pending_items,
    )
    self._n_step = n_step
    self._discount = discount
    self._slots = [_Slot() for _ in range(batch_size)]

  def reset(self) -> None:
    super().reset()
    self._slots = [_Slot() for _ in self._slots]

  def _start(self, slot: int, observation: reverb_adder.Leaves) -> None:
    self._slots[slot] = _Slot(observation=observation)

  def _step(
    self, slot, action, extras, reward, discount, next_observation, last
  ) -> None:
    episode = self._slots[slot]
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
