"""Rounds of unrolls: deterministic schedule of concurrent acting."""

import dataclasses
import pickle
import threading
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from repertory.components import transports, variables
from repertory.components.replay import local
from repertory.components.runtime import signals
from repertory.launch.coordination import reports
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import actor, learner, node
from repertory.launch.platform import watchdog

# Timeout of the current round when a run stops.
_FINISH_SECONDS = 5.0


class Rounds:
  """Divides acting into rounds, between which all actors wait.

  In a round each environment makes one unroll, while the learner makes the
  updates that were due at its start. So round k, from 0, acts with the
  variables learned from exactly the rounds before k − 1. Between rounds all
  items are in the table, and a checkpoint is that of an exact resume.

  Attributes:
    period: Environment batch steps per round.
    restored: State in the initial checkpoint, empty without one: that of each
      'actor', and the variables of 'acting'.
    acting: Variables that the next round acts with; None within a round, whose
      updates may not be complete.
    can_be_saved: Whether checkpoints have the state of actors.
  """

  acting: variables.Snapshot | None = None

  def __init__(
    self,
    session: session_lib.Session,
    num_actors: int,
    transport: transports.InProcessTransport,
  ):
    """Starts before the first round; snapshots of the table use it."""
    experiment = session.experiment
    unrolls: Any = session.experience.items
    self.period: int = unrolls.stride
    self.restored = _read(transport.actors.restored)
    self.can_be_saved = experiment.checkpoint_replay
    self._max_steps = experiment.max_steps
    self._timeout_seconds = experiment.timeout_seconds
    self._counts_before = session.counts
    self._num_actors = num_actors
    self._waiting: dict[int, RoundActorNode] = {}
    self._num_begun = 0
    self._is_over = False
    self._last: transports.ActorState | None = None
    self._has_changed = threading.Condition()
    if self.can_be_saved:
      transport.actors.take = self.take

  def wait_for_round(
    self, index: int, actor_node: 'RoundActorNode', stop: signals.StopSignal
  ) -> bool:
    """Lets an actor wait for the next round; returns whether it takes place."""
    with self._has_changed:
      number = self._num_begun
      self._waiting[index] = actor_node
      self._has_changed.notify_all()
    try:
      self._wait(
        lambda: self._is_over or self._num_begun > number,
        f'the learner to begin round {number}',
        stop,
      )
    except BaseException:
      with self._has_changed:  # Its environments will be closed.
        self._waiting.pop(index, None)
      raise
    return not self._is_over

  def wait_for_actors(self, stop: signals.StopSignal) -> None:
    """Lets the learner wait until all actors are between two rounds."""
    self._wait(
      self._are_all_waiting,
      f'all actors to arrive at round {self._num_begun}',
      stop,
    )

  def begin(self, is_ending: bool) -> bool:
    """Begins the next round; returns False, for all, if acting ends.

    It also ends once the maximum number of environment steps is reached.
    """
    with self._has_changed:
      if is_ending or self._counts()['steps'] >= self._max_steps:
        self._last, self._is_over = self.take(), True
      self._num_begun += 1
      self.acting = None
      self._waiting.clear()
      self._has_changed.notify_all()
    return not self._is_over

  def take(self) -> transports.ActorState | None:
    """Returns the actors' state between two rounds; None in a round."""
    with self._has_changed:
      if self._is_over:
        return self._last
      acting = self.acting
      if acting is None or not (self.can_be_saved and self._are_all_waiting()):
        return None
      saved = [one.save() for _, one in sorted(self._waiting.items())]
      self.can_be_saved = None not in saved
      if not self.can_be_saved:
        return None
      values = [value.numpy() for value in acting.values]
      state = {
        'actors': saved,
        'acting': tuple(acting._replace(values=values)),
      }
      return transports.ActorState(pickle.dumps(state), self._counts())

  def _are_all_waiting(self) -> bool:
    return len(self._waiting) == self._num_actors

  def _counts(self) -> dict[str, int]:
    """Returns the run's counts while all actors wait."""
    before, actors = self._counts_before, self._waiting.values()
    return {
      'steps': before['steps'] + sum(one.total_steps for one in actors),
      'episodes': (
        before['episodes'] + sum(one.total_episodes for one in actors)
      ),
    }

  def _wait(
    self, is_over: Callable[[], bool], what: str, stop: signals.StopSignal
  ) -> None:
    def attempt(seconds: float) -> bool:
      with self._has_changed:
        return self._has_changed.wait_for(is_over, seconds)

    seconds = self._timeout_seconds
    if not self._num_begun:  # Actors are still being made.
      seconds = max(seconds, watchdog.START_SECONDS)
    signals.wait_for(attempt, lambda: what, seconds, stop)


def _read(restored: bytes) -> Mapping[str, Any]:
  """Decodes the state of actors saved by `Rounds`; empty bytes without one."""
  if not restored:
    return {}
  with local.reading('The state of actors in the checkpoint'):
    state = pickle.loads(restored)
    return {name: state[name] for name in ('actors', 'acting')}


class RoundLearnerNode(learner.LearnerNode):
  """Learner in `Rounds`: publishes and saves its variables between rounds."""

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    transport: transports.InProcessTransport,
    rounds: Rounds,
    interruption: signals.StopSignal,
  ):
    """Makes the learner; `interruption` ends acting after the current round."""
    self._rounds = rounds
    self._interruption = interruption
    self._is_ending = False
    super().__init__(context, session, transport)

  def _learn(self) -> None:
    rounds, publisher = self._rounds, self.publisher
    rounds.wait_for_actors(self._stop)
    if rounds.restored:  # At its end, a run had learned from the last round.
      values, *rest = rounds.restored['acting']
      tensors = [tf.constant(value) for value in values]
      publisher.newest = variables.Snapshot(tensors, *rest)
    takes_place = True
    while takes_place:
      rounds.acting = publisher.newest
      self.checkpoint_if_due()
      num_updates = self._end.updates_due(self.version)
      is_interrupted = self._interruption.is_set()
      takes_place = rounds.begin(self._is_ending or is_interrupted)
      if is_interrupted:
        return  # A resumed run acts with these variables.
      for _ in range(num_updates):
        self._stop.check()
        self.step()
      if takes_place:
        rounds.wait_for_actors(self._stop)
      self._publish()

  def report(self) -> reports.HeartbeatReply:
    reply = super().report()
    self._is_ending = reply.is_ending
    return reply


class RoundActorNode(actor.ActorNode):
  """Actor in `Rounds`, which limit its steps in place of the coordinator."""

  def __init__(self, rounds: Rounds, index: int, *arguments, **settings):
    """Makes the actor, and restores its state of the checkpoint, if any."""
    self._rounds = rounds
    self._index = index
    super().__init__(*arguments, **settings)
    if rounds.restored:
      self.restore(rounds.restored['actors'][index])
    # So that the warning comes at the start.
    if rounds.can_be_saved and self.save() is None:
      rounds.can_be_saved = False

  def run(self) -> None:
    """Acts in all rounds that take place; a stop lets the current one end."""
    try:
      while self._rounds.wait_for_round(self._index, self, self._stop):
        self._variable_client.update(wait=True)
        for _ in range(self._rounds.period):
          self._stop.check()
          self.step()
        self.flush()
    finally:
      self.write_recordings()


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
