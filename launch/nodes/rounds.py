"""Rounds of unrolls: deterministic schedule of concurrent acting."""

import dataclasses
import math
import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from repertory.components import transports, variables
from repertory.components.replay import local
from repertory.components.runtime import signals
from repertory.launch.coordination import reports
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import actor, node

# Timeout of the current round when a run stops.
_FINISH_SECONDS = 5.0


@dataclasses.dataclass(frozen=True)
class Schedule:
  """Schedule of the variable version for each round.

  In a round each environment makes one unroll. Round k, from 0, acts with the
  variables learned from exactly the rounds before k − 1. So the learner learns
  from the latest round while actors act.

  Attributes:
    period: Environment batch steps per round.
    num_environments: Environments of all actors, equal to items per round.
    batch_size: Items per learner step.
  """

  period: int
  num_environments: int
  batch_size: int

  def version_of(self, number: int) -> int:
    """Returns the variable version (learner steps) for a round."""
    return self.items_before(max(0, number - 1)) // self.batch_size

  def items_before(self, number: int) -> int:
    """Returns the number of items of all rounds before a round."""
    return number * self.num_environments

  @property
  def num_versions(self) -> int:
    """Number of versions that an actor may still need.

    When the first actor begins round k, the last one is in round k − 1 or
    later. When the last one begins round k, the learner may already have
    consumed all other items of that round.
    """
    return math.ceil(2 * self.num_environments / self.batch_size) + 1


class ActorDeposit(NamedTuple):
  """State of an actor at the start of a round.

  Its environment steps over all runs, the episodes it finished in this run, and
  the result of `ActorNode.save`.
  """

  steps: int
  episodes: int
  saved: bytes


class Restored(NamedTuple):
  """State of the rounds in a checkpoint; by default that of a new run.

  Attributes:
    number: Number of the round at which acting resumes.
    steps: Environment steps before this round and before the previous one, by
      round.
    deposits: State of each actor, by index.
    versions: Variables that coming rounds act with, oldest first: learner
      steps, largest priority and values.
  """

  number: int = 0
  steps: Mapping[int, int] = {}
  deposits: Mapping[int, ActorDeposit] = {}
  versions: Sequence[tuple[int, float, list[np.ndarray]]] = ()

  @classmethod
  def read(cls, restored: bytes) -> 'Restored':
    """Decodes the state saved by `Rounds`; empty bytes if none."""
    if not restored:
      return cls()
    with local.reading('The state of actors in the checkpoint'):
      return cls(*pickle.loads(restored))


class Rounds(transports.ActorSnapshots):
  """Synchronizes rounds of all actors, so that all end after the same one.

  Whether a round takes place depends on the steps taken one round earlier. So a
  run may exceed `max_steps` by the steps of two rounds.

  A snapshot is taken at the start of a round, without stopping the run. Each
  actor saves its state when it arrives at the round, and continues. The learner
  continues, too, but not with items of that round. Once all actors have
  arrived, their states are saved with the remaining items of earlier rounds.

  Attributes:
    is_possible: Whether snapshots can be taken.
  """

  def __init__(
    self,
    schedule: Schedule,
    num_actors: int,
    publisher: variables.Publisher,
    *,
    max_steps: int,
    num_episodes: int,
    timeout_seconds: float,
    stop: signals.StopSignal,
    restored: Restored,
  ):
    """Starts at a round without arrivals, and without a snapshot.

    Args:
      publisher: Publisher of the variables that coming rounds act with.
      max_steps: Environment steps after which no further round begins.
      num_episodes: Episodes finished before this run.
      timeout_seconds: Timeout of waits for other actors.
      stop: Signal that ends the learner's wait for actors.
    """
    self.schedule = schedule
    self.restored = restored
    self._num_actors = num_actors
    self._publisher = publisher
    self._max_steps = max_steps
    self._num_episodes = num_episodes
    self._timeout_seconds = timeout_seconds
    self._stop = stop
    # By round: number of arrived actors, and environment steps before it.
    self._steps = {
      k: n for k, n in restored.steps.items() if k < restored.number
    }
    self._arrived = dict.fromkeys(self._steps, num_actors)
    self._newest = self._last_begun = restored.number - 1
    self._is_ending = False
    # Of the snapshot: its round, actors, and steps as in `Restored`.
    self.is_possible, self._is_over = True, False
    self._number: int | None = None
    self._deposits: dict[int, ActorDeposit] = {}
    self._steps_before: Mapping[int, int] = {}
    self._has_come = threading.Condition()

  def begin(self, number: int, steps: int, stop: signals.StopSignal) -> bool:
    """Blocks until it is decided; returns whether a round takes place.

    Args:
      number: Number of the round; an actor asks for rounds in order.
      steps: Environment steps of this actor in all earlier rounds.
      stop: Signal that ends the wait.
    """
    with self._has_come:
      self._newest = max(self._newest, number)
      self._arrived[number] = self._arrived.get(number, 0) + 1
      self._steps[number] = self._steps.get(number, 0) + steps
      self._has_come.notify_all()
    before = max(0, number - 1)
    self._wait(
      before, lambda: self._arrived.get(before, 0) == self._num_actors, stop
    )
    with self._has_come:
      for counts in (self._arrived, self._steps):
        counts.pop(before - 2, None)  # No actor needs it.
      is_over = self._is_ending and number > self._last_begun
      takes_place = self._steps[before] < self._max_steps and not is_over
      if takes_place:
        self._last_begun = max(self._last_begun, number)
      return takes_place

  def end(self) -> None:
    """Lets no further round begin than those that any actor has begun."""
    with self._has_come:
      self._is_ending = True

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
    """Takes the state of an actor at the start of a round, if needed.

    Acting ends at a round that does not take place. `make_deposit` returns None
    if the actor cannot be saved.
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
        self._steps_before = {
          k: self._steps[k] for k in {max(0, number - 1), number}
        }
      self._has_come.notify_all()

  def prepare(self, num_sampled: int) -> bool:
    with self._has_come:
      if self._number is None:  # The first round at which no actor has arrived.
        self._begin_anew(self._newest + 1)
      if self._is_whole() or not self.is_possible:
        return True
      number = self._number or 0
      limit = self.schedule.items_before(number)
      if num_sampled + self.schedule.batch_size <= limit:
        return False
    self._wait(
      number, lambda: self._is_whole() or not self.is_possible, self._stop
    )
    return True

  def take(self) -> transports.ActorState | None:
    with self._has_come:
      number, deposits = self._number, self._deposits
      steps = self._steps_before
      if number is None or not (self.is_possible and self._is_whole()):
        return None
      if not self._is_over:
        self._number, self._deposits = None, {}
    versions = self._publisher.copy_from(self.schedule.version_of(number))
    episodes = sum(deposit.episodes for deposit in deposits.values())
    return transports.ActorState(
      pickle.dumps((number, steps, deposits, versions)),
      self.schedule.items_before(number),
      {'steps': steps[number], 'episodes': self._num_episodes + episodes},
    )

  def _begin_anew(self, number: int) -> None:
    self._number, self._deposits = number, {}

  def _is_whole(self) -> bool:
    return len(self._deposits) == self._num_actors

  def _wait(
    self, number: int, is_over: Callable[[], bool], stop: signals.StopSignal
  ) -> None:
    """Waits for all actors to arrive at a round, or until `is_over`."""

    def attempt(seconds: float) -> bool:
      with self._has_come:
        return self._has_come.wait_for(is_over, seconds)

    signals.wait_for(
      attempt,
      lambda: f'all actors to arrive at round {number}',
      self._timeout_seconds,
      stop,
    )


def make(
  session: session_lib.Session,
  num_actors: int,
  transport: transports.InProcessTransport,
  publisher: variables.Publisher,
  stop: signals.StopSignal,
) -> Rounds:
  """Makes the rounds of a run, from the first or from that of its checkpoint.

  Unrolls are the items of its experience. `publisher` keeps from now on all
  variables that actors may still need.
  """
  experiment, experience = session.experiment, session.experience
  unrolls: Any = experience.items
  schedule = Schedule(
    unrolls.stride, experiment.num_environments, experience.batch_size
  )
  restored = Restored.read(transport.actors.restored)
  publisher.keep(schedule.num_versions)
  publisher.restore(restored.versions)
  rounds = Rounds(
    schedule,
    num_actors,
    publisher,
    max_steps=experiment.max_steps,
    num_episodes=session.counts['episodes'],
    timeout_seconds=experiment.timeout_seconds,
    stop=stop,
    restored=restored,
  )
  if experiment.checkpoint_replay:
    transport.actors.source = rounds
  else:
    rounds.give_up()
  return rounds


class RoundActorNode(actor.ActorNode):
  """Actor in `Rounds`, which limit its steps in place of the coordinator."""

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    index: int,
    environment_ids: Sequence[int],
    *,
    network: Any,
    publisher: variables.Publisher,
    transport: transports.InProcessTransport,
    rounds: Rounds,
  ):
    """Makes the actor, and restores its state of the checkpoint, if any."""
    self._rounds = rounds
    self._index = index
    self._is_stopping = context.stop.is_set
    self._steps_before = 0  # Of earlier runs.
    context = finishing_rounds(context)
    timeout_seconds = session.experiment.timeout_seconds
    super().__init__(
      context,
      session,
      environment_ids,
      network=network,
      variable_client=variables.ScheduledVariableClient(
        publisher,
        network.variables,
        period=rounds.schedule.period,
        first_round=rounds.restored.number,
        version_of=rounds.schedule.version_of,
        timeout_seconds=timeout_seconds,
        stop=context.stop,
      ),
      transport=transport.at(
        local.WaitPolicy(timeout_seconds, context.stop), index
      ),
    )
    try:
      deposit = rounds.restored.deposits.get(index)
      if deposit is not None:
        self.restore(deposit.saved)
        self._steps_before = deposit.steps
      # So that the warning comes at the start.
      if rounds.is_possible and self.save() is None:
        rounds.give_up()
    except BaseException:
      self.close()
      raise

  def run(self) -> None:
    """Acts in all rounds that take place; a stop lets the current one end."""
    self._variable_client.update(wait=True)
    number = self._rounds.restored.number
    try:
      while not self._stop.is_set() and self._begin(number):
        for _ in range(self._rounds.schedule.period):
          if not self._stop.is_set():
            self.step()
        number += 1
    finally:
      self.write_recordings()
    self.flush()  # The learner expects all items once actors are done.

  def report(self) -> reports.HeartbeatReply:
    reply = super().report()
    if reply.is_ending:
      self._rounds.end()
    return reply

  def _begin(self, number: int) -> bool:
    """Arrives at a round; returns whether it takes place."""
    if self._is_stopping():
      self._rounds.end()
    steps = self._steps_before + self.total_steps
    takes_place = self._rounds.begin(number, steps, self._stop)
    self._rounds.arrive(self._index, number, takes_place, self._make_deposit)
    return takes_place

  def _make_deposit(self) -> ActorDeposit | None:
    self.flush()
    saved = self.save()
    if saved is None:
      return None
    steps = self._steps_before + self.total_steps
    return ActorDeposit(steps, self.total_episodes, saved)


def finishing_rounds(context: node.Context) -> node.Context:
  """Returns a context whose stop signal lets the current round end first.

  After a failure of any node the round cannot end, so there is no delay.
  """

  def is_without_failure() -> bool:
    try:
      return context.coordinator.failure() is None
    except Exception:  # The coordinator may have ended.
      return False

  late = signals.delayed(context.stop, _FINISH_SECONDS, is_without_failure)
  return dataclasses.replace(context, stop=late)
