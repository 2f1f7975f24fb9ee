"""Rounds of unrolls: deterministic schedule of concurrent acting."""

import dataclasses
import math
import threading
from collections.abc import Callable, Mapping

from repertory.components.runtime import signals


@dataclasses.dataclass(frozen=True)
class Schedule:
  """Schedule of the variable version for each round.

  In a round each environment makes one unroll. Round k, from 0, acts with the
  variables learned from exactly the rounds before k − lag. So the learner
  learns from the latest rounds while actors act.

  Attributes:
    period: Environment batch steps per round.
    num_environments: Environments of all actors, equal to items per round.
    batch_size: Items per learner step.
    lag: Rounds between acting and learning; at least 1, or acting and learning
      would alternate.
  """

  period: int
  num_environments: int
  batch_size: int
  lag: int = 1

  def version_of(self, number: int) -> int:
    """Returns the variable version (learner steps) for a round."""
    return self.items_before(max(0, number - self.lag)) // self.batch_size

  def items_before(self, number: int) -> int:
    """Returns the number of items of all rounds before a round."""
    return number * self.num_environments

  @property
  def num_versions(self) -> int:
    """Number of versions that an actor may still need.

    When the first actor begins round k, the last one is in round k − lag or
    later. When the last one begins round k, the learner may already have
    consumed all other items of that round.
    """
    num_items = (self.lag + 1) * self.num_environments
    return math.ceil(num_items / self.batch_size) + 1


@dataclasses.dataclass(frozen=True)
class RoundStart:
  """First round of a run, which may be a resumed one.

  Attributes:
    number: Number of the round.
    steps: Environment steps before this round and before each of the `lag`
      previous ones, by round.
  """

  number: int = 0
  steps: Mapping[int, int] = dataclasses.field(default_factory=dict)


class Rounds:
  """Synchronizes rounds of all actors, so that all end after the same one.

  Whether a round takes place depends on the steps taken `lag` rounds earlier.
  So a run may exceed `max_steps` by the steps of `lag` + 1 rounds.
  """

  def __init__(
    self,
    schedule: Schedule,
    num_actors: int,
    max_steps: int,
    timeout_seconds: float,
    beginning: RoundStart = RoundStart(),
  ):
    """Starts at a round without arrivals.

    Args:
      max_steps: Environment steps after which no further round begins.
      timeout_seconds: Timeout of waits for other actors.
    """
    self.schedule = schedule
    self.num_actors = num_actors
    self.beginning = beginning
    self._max_steps = max_steps
    self._timeout_seconds = timeout_seconds
    # By round: number of arrived actors, and environment steps before it.
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
    """Blocks until it is decided whether a round takes place.

    Args:
      number: Number of the round; an actor asks for rounds in order.
      steps: Environment steps of this actor in all earlier rounds.
      stop: Signal that ends the wait.

    Returns:
      Whether the round takes place.
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
      lambda: f'all actors to arrive at round {before}',
      self._timeout_seconds,
      stop,
    )
    with self._has_come:
      for counts in (self._arrived, self._steps):
        counts.pop(before - lag - 1, None)  # No actor needs it.
      is_over = self._is_ending and number > self._last_begun
      takes_place = self._steps[before] < self._max_steps and not is_over
      if takes_place:
        self._last_begun = max(self._last_begun, number)
      return takes_place

  def end(self) -> None:
    """Lets no further round begin than those that any actor has begun."""
    with self._has_come:
      self._is_ending = True

  def next_to_come(self) -> int:
    """Returns the first round at which no actor has arrived."""
    with self._has_come:
      return self._newest + 1

  def steps_before(self, number: int) -> dict[int, int]:
    """Returns `RoundStart.steps` of a round at which all have arrived."""
    with self._has_come:
      first = max(0, number - self.schedule.lag)
      return {k: self._steps[k] for k in range(first, number + 1)}

  def _wait(self, number: int, seconds: float) -> bool:
    with self._has_come:
      return self._has_come.wait_for(
        lambda: self._arrived.get(number, 0) == self.num_actors, seconds
      )


class RoundBudget:
  """Step budget of one actor: grants the steps of its rounds one at a time.

  Attributes:
    arrive: Callback at the start of each round; takes its number, the steps so
      far and whether it takes place. Must be set before the first grant.
  """

  def __init__(
    self, rounds: Rounds, stop: signals.StopSignal, late: signals.StopSignal
  ):
    """Starts without grants.

    Args:
      stop: Signal after which no new round begins.
      late: Signal that ends waits for other actors.
    """
    self.arrive: Callable[[int, int, bool], None] | None = None
    self._rounds = rounds
    self._stop = stop
    self._late = late
    self._num_granted = rounds.beginning.number * rounds.schedule.period
    self._steps = 0

  def begin_with(self, steps: int) -> None:
    """Sets the steps taken before the first round."""
    self._steps = steps

  def acquire_steps(self, node: str, wanted: int) -> int:
    """Grants a step of the environment batch, if its round takes place."""
    del node
    number, is_within = divmod(self._num_granted, self._rounds.schedule.period)
    if not is_within and not self._begin(number):
      return 0
    self._num_granted += 1
    self._steps += wanted
    return wanted

  def return_steps(self, node: str, unused: int) -> None:
    """Takes back steps of environments that were reset instead."""
    del node
    self._steps -= unused

  def end(self) -> None:
    """Lets no further round begin than those that any actor has begun."""
    self._rounds.end()

  def _begin(self, number: int) -> bool:
    if self._stop.is_set():
      self._rounds.end()
    takes_place = self._rounds.begin(number, self._steps, self._late)
    if self.arrive is not None:
      self.arrive(number, self._steps, takes_place)
    return takes_place
