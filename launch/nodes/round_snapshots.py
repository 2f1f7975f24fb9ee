"""Snapshots at the start of a round, for bitwise reproducible resuming."""

import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from repertory.components import transports, variables
from repertory.components.replay import local
from repertory.components.runtime import signals
from repertory.launch.nodes import rounds as rounds_lib


class ActorDeposit(NamedTuple):
  """State of an actor at the start of a round.

  Attributes:
    steps: Environment steps of its earlier rounds, over all runs.
    episodes: Episodes it finished in this run.
    saved: Result of `ActorNode.save`.
  """

  steps: int
  episodes: int
  saved: bytes


class Restored(NamedTuple):
  """State of the rounds in a checkpoint, possibly empty.

  Attributes:
    beginning: Round at which acting resumes.
    deposits: State of each actor, by index.
    versions: Variables that coming rounds act with, oldest first: learner
      steps, largest priority and values.
  """

  beginning: rounds_lib.RoundStart
  deposits: Mapping[int, ActorDeposit]
  versions: Sequence[tuple[int, float, list[np.ndarray]]]

  @classmethod
  def read(cls, restored: bytes) -> 'Restored':
    """Decodes the state saved by `RoundSnapshots`; empty bytes if none."""
    if not restored:
      return cls(rounds_lib.RoundStart(), {}, [])
    with local.reading('The state of actors in the checkpoint'):
      return pickle.loads(restored)


class RoundSnapshots(transports.ActorSnapshots):
  """Takes a snapshot of a run at the start of a round, without stopping it.

  Each actor saves its state when it arrives at the round, and continues. The
  learner continues, too, but not with items of that round. Once all actors have
  arrived, their states are saved with the remaining items of earlier rounds.

  Attributes:
    is_possible: Whether snapshots can be taken.
  """

  def __init__(
    self,
    rounds: rounds_lib.Rounds,
    publisher: variables.Publisher,
    *,
    num_episodes: int,
    timeout_seconds: float,
    stop: signals.StopSignal,
  ):
    """Starts without a snapshot.

    Args:
      publisher: Publisher of the variables that coming rounds act with.
      num_episodes: Episodes finished before this run.
      timeout_seconds: Timeout of the learner's wait for actors.
      stop: Signal that ends that wait.
    """
    self._rounds = rounds
    self._publisher = publisher
    self._num_episodes = num_episodes
    self._timeout_seconds = timeout_seconds
    self._stop = stop
    self.is_possible, self._is_over = True, False
    self._number: int | None = None
    self._deposits: dict[int, ActorDeposit] = {}
    self._steps: Mapping[int, int] = {}
    self._has_come = threading.Condition()

  def give_up(self) -> None:
    """Takes no more snapshots, since an actor cannot be saved."""
    with self._has_come:
      self.is_possible = False
      self._has_come.notify_all()

  def arrive(
    self,
    index: int,
    number: int,
    takes_place: bool,
    make_deposit: Callable[[], ActorDeposit | None],
  ) -> None:
    """Records the arrival of an actor at the start of a round.

    Args:
      takes_place: Whether the round takes place; if not, acting ends there.
      make_deposit: Returns the actor's state if a snapshot needs it; None if
        the actor cannot be saved.
    """
    with self._has_come:
      if not takes_place:
        self._is_over = True
        if self._number != number:
          self._begin_anew(number)
      if self._number != number or not self.is_possible:
        return
    deposit = make_deposit()  # May block on the table.
    if deposit is None:
      self.give_up()
      return
    with self._has_come:
      if self._number != number:  # Acting has ended meanwhile.
        return
      self._deposits[index] = deposit
      if self._is_whole():
        self._steps = self._rounds.steps_before(number)
      self._has_come.notify_all()

  def prepare(self, num_sampled: int) -> bool:
    schedule = self._rounds.schedule
    with self._has_come:
      if self._number is None:
        self._begin_anew(self._rounds.next_to_come())
      if self._is_whole() or not self.is_possible:
        return True
      limit = schedule.items_before(self._number or 0)
      if num_sampled + schedule.batch_size <= limit:
        return False
    signals.wait_for(
      self._wait,
      lambda: f'all actors to arrive at round {self._number}',
      self._timeout_seconds,
      self._stop,
    )
    return True

  def take(self) -> transports.ActorState | None:
    with self._has_come:
      number, deposits, steps = self._number, self._deposits, self._steps
      if number is None or not (self.is_possible and self._is_whole()):
        return None
      if not self._is_over:
        self._number, self._deposits = None, {}
    schedule = self._rounds.schedule
    restored = Restored(
      rounds_lib.RoundStart(number, steps),
      deposits,
      self._publisher.copy_from(schedule.version_of(number)),
    )
    episodes = sum(deposit.episodes for deposit in deposits.values())
    return transports.ActorState(
      pickle.dumps(restored),
      schedule.items_before(number),
      {'steps': steps[number], 'episodes': self._num_episodes + episodes},
    )

  # With the lock held.

  def _begin_anew(self, number: int) -> None:
    self._number, self._deposits = number, {}

  def _is_whole(self) -> bool:
    return len(self._deposits) == self._rounds.num_actors

  def _wait(self, seconds: float) -> bool:
    with self._has_come:
      return self._has_come.wait_for(
        lambda: self._is_whole() or not self.is_possible, seconds
      )
