"""Rounds of unrolls, in which nothing depends on who is faster."""

import dataclasses
import math
import threading
from collections.abc import Callable, Mapping

from repertory.components import signals


@dataclasses.dataclass(frozen=True)
class Schedule:
  """Which variables act in which round.

  In a round each environment makes one unroll. Round k, from 0, acts with the
  variables that have learned from the rounds before k − lag, and from no other:
  while they act, the learner learns from the latest ones.

  Attributes:
    period: Steps of a round.
    num_environments: Over all actors, and so items of a round.
    batch_size: Items that a learner step takes.
    lag: At least 1, or nobody would act while the learner learns.
  """

  period: int
  num_environments: int
  batch_size: int
  lag: int = 1

  def version_of(self, number: int) -> int:
    """Returns the learner steps of the variables for a round."""
    return self.items_before(max(0, number - self.lag)) // self.batch_size

  def items_before(self, number: int) -> int:
    """Returns the items of all rounds before one."""
    return number * self.num_environments

  @property
  def num_versions(self) -> int:
    """Versions that somebody may still ask for.

    When the first begin round k, the last are in round k − lag at the earliest;
    and when the last begin round k, it may have been learned from all of it but
    for theirs.
    """
    num_items = (self.lag + 1) * self.num_environments
    return math.ceil(num_items / self.batch_size) + 1


@dataclasses.dataclass(frozen=True)
class Beginning:
  """Where a round begins, which need not be the first one.

  Attributes:
    number: The round.
    steps: Environment steps before each of the rounds that others still look
      at, by round: this one and the `lag` ones before it.
  """

  number: int = 0
  steps: Mapping[int, int] = dataclasses.field(default_factory=dict)


class Rounds:
  """Lets all who act end after the same round, however many they are.

  Whether there is a round follows from the steps of the rounds whose variables
  it acts with. So a run may have the steps of `lag` + 1 rounds more than it was
  to have.
  """

  def __init__(
    self,
    schedule: Schedule,
    num_actors: int,
    max_steps: int,
    timeout_seconds: float,
    beginning: Beginning = Beginning(),
  ):
    """Nobody has acted yet.

    Args:
      schedule: Which variables act in which round.
      num_actors: Who act.
      max_steps: When there have been so many steps there is no further round.
      timeout_seconds: How long a wait for others may last.
      beginning: Where all begin.
    """
    self.schedule = schedule
    self.num_actors = num_actors
    self.beginning = beginning
    self._max_steps = max_steps
    self._timeout_seconds = timeout_seconds
    # By round: who has come to its beginning, and the steps before it.
    self._arrived = {
      number: num_actors
      for number in beginning.steps
      if number < beginning.number
    }
    self._steps = {number: beginning.steps[number] for number in self._arrived}
    self._newest = self._last_begun = beginning.number - 1
    self._is_ending = False
    self._has_come = threading.Condition()

  def begin(self, number: int, steps: int, stop: signals.StopSignal) -> bool:
    """Waits until it is known whether there is a round; returns whether.

    Args:
      number: The round; each who acts asks for one after the other.
      steps: Environment steps of who asks, in all rounds before.
      stop: Ends the wait.

    Raises:
      signals.Stopped: If the stop signal was set.
      TimeoutError: If others did not come in time.
    """
    with self._has_come:
      self._newest = max(self._newest, number)
      self._arrived[number] = self._arrived.get(number, 0) + 1
      self._steps[number] = self._steps.get(number, 0) + steps
      self._has_come.notify_all()
    lag = self.schedule.lag
    before = max(0, number - lag)
    signals.wait_for(
      lambda seconds: self._wait(before, seconds),
      lambda: f'all who act to come to round {before}',
      self._timeout_seconds,
      stop,
    )
    with self._has_come:
      for counts in (self._arrived, self._steps):
        counts.pop(before - lag - 1, None)  # All have gone on from there.
      is_over = self._is_ending and number > self._last_begun
      goes_on = self._steps[before] < self._max_steps and not is_over
      if goes_on:
        self._last_begun = max(self._last_begun, number)
      return goes_on

  def end(self) -> None:
    """Lets there be no further round than those that somebody has begun."""
    with self._has_come:
      self._is_ending = True

  def next_to_come(self) -> int:
    """Returns the first round to whose beginning nobody has come yet."""
    with self._has_come:
      return self._newest + 1

  def steps_before(self, number: int) -> dict[int, int]:
    """Returns `Beginning.steps` of a round that all have come to."""
    with self._has_come:
      first = max(0, number - self.schedule.lag)
      return {k: self._steps[k] for k in range(first, number + 1)}

  def _wait(self, number: int, seconds: float) -> bool:
    with self._has_come:
      return self._has_come.wait_for(
        lambda: self._arrived.get(number, 0) == self.num_actors, seconds
      )


class RoundLeases:
  """Grants one of those who act the steps of its rounds, one at a time.

  Attributes:
    arrive: Called at the beginning of each round, with its number, the steps
      taken so far and whether there is that round. To be set before the first
      step is granted.
  """

  def __init__(
    self, rounds: Rounds, stop: signals.StopSignal, late: signals.StopSignal
  ):
    """Has granted nothing yet.

    Args:
      stop: Lets rounds end that have begun, and none begin.
      late: Ends a wait for others.
    """
    self.arrive: Callable[[int, int, bool], None] | None = None
    self._rounds = rounds
    self._stop = stop
    self._late = late
    self._num_granted = rounds.beginning.number * rounds.schedule.period
    self._steps = 0

  def begin_with(self, steps: int) -> None:
    """Counts on from the steps that were taken before the first round."""
    self._steps = steps

  def acquire_steps(self, node: str, wanted: int) -> int:
    """Grants a step of the environment batch, if there is a round for it."""
    del node
    number, is_within = divmod(self._num_granted, self._rounds.schedule.period)
    if not is_within and not self._begin(number):
      return 0
    self._num_granted += 1
    self._steps += wanted
    return wanted

  def return_steps(self, node: str, unused: int) -> None:
    """Takes note of environments that took no step, between two episodes."""
    del node
    self._steps -= unused

  def end(self) -> None:
    """Lets there be no further round than those that somebody has begun."""
    self._rounds.end()

  def _begin(self, number: int) -> bool:
    if self._stop.is_set():
      self._rounds.end()
    goes_on = self._rounds.begin(number, self._steps, self._late)
    if self.arrive is not None:
      self.arrive(number, self._steps, goes_on)
    return goes_on
