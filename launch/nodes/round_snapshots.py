"""What is saved of rounds of unrolls, for a run to go on exactly."""

import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from repertory.components import roads, signals, variables
from repertory.components.replay import local
from repertory.launch.nodes import rounds as rounds_lib


class Deposit(NamedTuple):
  """Where one of those who act was at the beginning of a round.

  Attributes:
    steps: Environment steps of its rounds before, of all runs.
    episodes: Finished in this run.
    saved: From `ActorNode.save`.
  """

  steps: int
  episodes: int
  saved: bytes


class Restored(NamedTuple):
  """What a checkpoint has of rounds, or nothing.

  Attributes:
    beginning: The round with which they go on.
    deposits: What those who act left behind, by index.
    versions: Variables that rounds are still to act with, older ones first:
      learner steps, largest priority and values.
  """

  beginning: rounds_lib.Beginning
  deposits: Mapping[int, Deposit]
  versions: Sequence[tuple[int, float, list[np.ndarray]]]

  @classmethod
  def read(cls, restored: bytes) -> 'Restored':
    """Reads what `RoundSnapshots` gave; empty bytes for nothing."""
    if not restored:
      return cls(rounds_lib.Beginning(), {}, [])
    with local.reading('The state of actors in the checkpoint'):
      return pickle.loads(restored)


class RoundSnapshots(roads.ActorSnapshots):
  """Saves a run at the beginning of a round, while its threads go on.

  Whoever acts leaves behind where it is when it comes to the round, and goes
  on. The learner goes on, too, but for updates from items of that round. When
  all have come, it is saved with the items that are left of the rounds before.
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
    """Has nothing yet.

    Args:
      rounds: In which all act.
      publisher: Has the variables that rounds are still to act with.
      num_episodes: Finished before this run.
      timeout_seconds: How long the learner waits for others.
      stop: Ends that wait.
    """
    self._rounds = rounds
    self._publisher = publisher
    self._num_episodes = num_episodes
    self._timeout_seconds = timeout_seconds
    self._stop = stop
    self._is_possible, self._is_over = True, False
    self._number: int | None = None
    self._deposits: dict[int, Deposit] = {}
    self._steps: Mapping[int, int] = {}
    self._has_come = threading.Condition()

  @property
  def is_possible(self) -> bool:
    """Whether anything may be saved."""
    return self._is_possible

  def give_up(self) -> None:
    """Saves nothing from now on, for not all who act can be saved."""
    with self._has_come:
      self._is_possible = False
      self._has_come.notify_all()

  def arrive(
    self,
    index: int,
    number: int,
    goes_on: bool,
    make_deposit: Callable[[], Deposit | None],
  ) -> None:
    """Takes note that somebody has come to the beginning of a round.

    Args:
      index: Whoever of those who act it is.
      number: The round.
      goes_on: Whether there is that round; if not, it is the end of all.
      make_deposit: Called if it is to be saved; gives None if it cannot be.
    """
    with self._has_come:
      if not goes_on:
        self._is_over = True
        if self._number != number:
          self._begin_anew(number)
      if self._number != number or not self._is_possible:
        return
    deposit = make_deposit()  # Which may wait for the table.
    if deposit is None:
      self.give_up()
      return
    with self._has_come:
      if self._number != number:  # The end of all was told meanwhile.
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
      if self._is_whole() or not self._is_possible:
        return True
      limit = schedule.items_before(self._number or 0)
      if num_sampled + schedule.batch_size <= limit:
        return False
    signals.wait_for(
      self._wait,
      lambda: f'all who act to come to round {self._number}',
      self._timeout_seconds,
      self._stop,
    )
    return True

  def take(self) -> roads.Moment | None:
    with self._has_come:
      number, deposits, steps = self._number, self._deposits, self._steps
      if number is None or not (self._is_possible and self._is_whole()):
        return None
      if not self._is_over:
        self._number, self._deposits = None, {}
    schedule = self._rounds.schedule
    restored = Restored(
      rounds_lib.Beginning(number, steps),
      deposits,
      self._publisher.copy_from(schedule.version_of(number)),
    )
    episodes = sum(deposit.episodes for deposit in deposits.values())
    return roads.Moment(
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
        lambda: self._is_whole() or not self._is_possible, seconds
      )
