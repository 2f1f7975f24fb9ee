"""What is saved of rounds of unrolls, for a run to go on exactly."""

import pickle
import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from repertory.components import roads, signals, variables
from repertory.launch.nodes import rounds as rounds_lib


class Deposit(NamedTuple):
  """What one of those who act was at the beginning of a round.

  Attributes:
    steps: Environment steps of its rounds before, of all runs.
    episodes: Finished in this run.
    saved: From `ActorNode.save`.
  """

  steps: int
  episodes: int
  saved: bytes


class Start(NamedTuple):
  """Where rounds begin, or go on from a checkpoint.

  Attributes:
    schedule: Counts from the first round of all.
    beginning: The round.
    steps_at_first: Environment steps before the first round of all.
    deposits: What those who act left behind, by index; empty if they begin
      anew.
    versions: Variables that rounds are still to act with, older ones first:
      learner steps, largest priority and values.
  """

  schedule: rounds_lib.Schedule
  beginning: rounds_lib.Beginning
  steps_at_first: int
  deposits: Mapping[int, Deposit]
  versions: list[tuple[int, float, list[np.ndarray]]]

  @classmethod
  def read(cls, found: bytes) -> 'Start':
    """Reads what `RoundSnapshots` gave."""
    return pickle.loads(found)


class RoundSnapshots(roads.Companion):
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
    num_inserts: int,
    counts: Mapping[str, int],
    steps_at_first: int,
    timeout_seconds: float,
    stop: signals.StopSignal,
  ):
    """Has nothing yet.

    Args:
      rounds: In which all act.
      publisher: Has the variables that rounds are still to act with.
      num_inserts: Items that were ever inserted before the first round.
      counts: The run's steps and episodes before its first round.
      steps_at_first: Environment steps before the first round of all runs.
      timeout_seconds: How long the learner waits for others.
      stop: Ends that wait.
    """
    self._rounds = rounds
    self._publisher = publisher
    self._num_inserts = num_inserts
    self._counts = counts
    self._steps_at_first = steps_at_first
    self._timeout_seconds = timeout_seconds
    self._stop = stop
    self._is_possible, self._is_over = True, False
    self._number: int | None = None
    self._deposits: dict[int, Deposit] = {}
    self._steps: Mapping[int, int] = {}
    self._has_come = threading.Condition()

  def give_up(self) -> None:
    """Saves nothing, for not all who act can be saved."""
    with self._has_come:
      self._is_possible = False

  def come(
    self,
    index: int,
    number: int,
    goes_on: bool,
    make_deposit: Callable[[], Deposit],
  ) -> None:
    """Takes note that somebody has come to the beginning of a round.

    Args:
      index: Whoever of those who act it is.
      number: The round.
      goes_on: Whether there is that round; if not, it is the end of all.
      make_deposit: Called if it is to be saved.
    """
    with self._has_come:
      if not goes_on:
        self._is_over = True
        if self._number != number:
          self._begin_anew(number)
      if self._number != number:
        return
    deposit = make_deposit()  # Which may wait for the table.
    with self._has_come:
      self._deposits[index] = deposit
      if self._is_whole():
        self._steps = self._rounds.steps_before(number)
      self._has_come.notify_all()

  def prepare(self, num_sampled: int) -> bool:
    schedule = self._rounds.schedule
    with self._has_come:
      if not self._is_possible:
        return True
      if self._number is None:
        self._begin_anew(self._rounds.next_to_come())
      if self._is_whole():
        return True
      if num_sampled + schedule.batch_size <= self._inserts_before():
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
      num_inserts = self._inserts_before()
      if not self._is_over:
        self._number, self._deposits = None, {}
    schedule = self._rounds.schedule
    start = Start(
      schedule,
      rounds_lib.Beginning(number, steps),
      self._steps_at_first,
      deposits,
      self._publisher.copy_from(schedule.version_of(number)),
    )
    episodes = sum(deposit.episodes for deposit in deposits.values())
    counts = {
      'steps': self._steps_at_first + steps[number],
      'episodes': self._counts['episodes'] + episodes,
    }
    return roads.Moment(pickle.dumps(start), num_inserts, counts)

  # With the lock held.

  def _begin_anew(self, number: int) -> None:
    self._number, self._deposits = number, {}

  def _is_whole(self) -> bool:
    return len(self._deposits) == self._rounds.num_actors

  def _inserts_before(self) -> int:
    """Returns the items ever inserted before the round that is to be saved."""
    num_rounds = (self._number or 0) - self._rounds.beginning.number
    num_items = num_rounds * self._rounds.schedule.num_environments
    return self._num_inserts + num_items

  def _wait(self, seconds: float) -> bool:
    with self._has_come:
      return self._has_come.wait_for(self._is_whole, seconds)
