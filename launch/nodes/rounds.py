"""Rounds of unrolls, in which nothing depends on who is faster."""

import dataclasses
import math
import threading

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
    version: Learner steps at the beginning.
    num_items: What is in the queue at the beginning.
    lag: At least 1, or nobody would act while the learner learns.
  """

  period: int
  num_environments: int
  batch_size: int
  version: int = 0
  num_items: int = 0
  lag: int = 1

  def version_of(self, number: int) -> int:
    """Returns the learner steps of the variables for a round."""
    num_rounds = max(0, number - self.lag)
    num_items = self.num_items + num_rounds * self.num_environments
    return self.version + num_items // self.batch_size

  @property
  def num_versions(self) -> int:
    """Versions that somebody may still ask for.

    When the first begin round k, the last are in round k − lag at the earliest;
    and when the last begin round k, it may have been learned from all of it but
    for theirs.
    """
    num_items = (self.lag + 1) * self.num_environments
    return math.ceil(num_items / self.batch_size) + 1


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
  ):
    """Nobody has acted yet.

    Args:
      schedule: Which variables act in which round.
      num_actors: Who act.
      max_steps: When there have been so many steps there is no further round.
      timeout_seconds: How long a wait for others may last.
    """
    self.schedule = schedule
    self._num_actors = num_actors
    self._max_steps = max_steps
    self._timeout_seconds = timeout_seconds
    # By round: who has come to its beginning, and the steps before it.
    self._arrived: dict[int, int] = {}
    self._steps: dict[int, int] = {}
    self._has_come = threading.Condition()

  def begin(self, number: int, steps: int, stop: signals.StopSignal) -> bool:
    """Waits until it is known whether there is a round; returns whether.

    Args:
      number: The round, from 0; each who acts asks for one after the other.
      steps: Environment steps of who asks, in all rounds before.
      stop: Ends the wait.

    Raises:
      signals.Stopped: If the stop signal was set.
      TimeoutError: If others did not come in time.
    """
    with self._has_come:
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
      return self._steps[before] < self._max_steps

  def _wait(self, number: int, seconds: float) -> bool:
    with self._has_come:
      return self._has_come.wait_for(
        lambda: self._arrived.get(number, 0) == self._num_actors, seconds
      )


class RoundLeases:
  """Grants one of those who act the steps of its rounds, one at a time."""

  def __init__(self, rounds: Rounds, stop: signals.StopSignal):
    """Has granted nothing yet.

    Args:
      stop: Ends a wait for others.
    """
    self._rounds = rounds
    self._stop = stop
    self._num_granted = 0
    self._steps = 0

  def acquire_steps(self, node: str, wanted: int) -> int:
    """Grants a step of the environment batch, if there is a round for it."""
    del node
    number, is_within = divmod(self._num_granted, self._rounds.schedule.period)
    if not is_within and not self._rounds.begin(
      number, self._steps, self._stop
    ):
      return 0
    self._num_granted += 1
    self._steps += wanted
    return wanted

  def return_steps(self, node: str, unused: int) -> None:
    """Takes note of environments that took no step, between two episodes."""
    del node
    self._steps -= unused
