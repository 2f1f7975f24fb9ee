"""Learner that shares a process with its actors."""

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any, cast

from repertory.components import adders, transports, variables
from repertory.components.replay import local
from repertory.components.runtime import signals
from repertory.components.transports import experience as experience_lib
from repertory.launch.coordination import kinds, starts
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import actor as actor_lib
from repertory.launch.nodes import learner as learner_lib
from repertory.launch.nodes import node
from repertory.launch.nodes import rounds as rounds_lib

# Timeout of the current round when a deterministic run stops.
_FINISH_SECONDS = 5.0


class LocalLearner:
  """Connects the learner and the actors of one process, each in its own thread.

  Items and variables are exchanged in memory. Actors wait until the learner is
  made. An object serves one launch of a node graph. Each node's own stop signal
  ends its waits, so a failed node stops others only through the coordinator.

  If the unrolls of all environments end together, actors insert theirs
  round-robin. So none is ahead of the slowest by more than its pending items.
  """

  def __init__(
    self,
    session: session_lib.Session,
    num_actors: int,
  ):
    """Starts without a learner.

    A deterministic run follows a `rounds.Schedule`, and `supports_lockstep`.
    """
    self._session = session
    self._num_actors = num_actors
    self._is_deterministic = session.experiment.deterministic
    self._num_round_robin = (
      num_actors if _inserts_round_robin(session.experience) else None
    )
    self._made: (
      tuple[
        variables.Publisher,
        transports.InProcessTransport,
        rounds_lib.Rounds | None,
      ]
      | None
    ) = None

  def make(self, context: node.Context) -> learner_lib.LearnerNode:
    """Makes the learner in the calling thread, and publishes it to actors."""
    if self._is_deterministic:
      context = _finish_rounds(context)
    transport = self._session.make_in_process_transport(
      context.stop, self._num_round_robin
    )
    with contextlib.ExitStack() as unless_made:
      learner = learner_lib.LearnerNode(context, self._session, transport)
      unless_made.callback(learner.close)
      # Before the first update, which must not overlap with a read.
      publisher, rounds = learner.publisher, None
      if self._is_deterministic:
        rounds = self._make_rounds(publisher, transport, context.stop)
      unless_made.pop_all()
    self._made = publisher, transport, rounds
    return learner

  def follow(
    self, context: node.Context
  ) -> tuple[Any, variables.LocalVariableClient]:
    """Makes a network, and a client for the learner's newest variables."""
    publisher, _, _ = self._find(context)
    network = self._make_network()
    return network, variables.LocalVariableClient(publisher, network.variables)

  def make_actor(
    self, context: node.Context, index: int, environment_ids: Sequence[int]
  ) -> actor_lib.ActorNode:
    """Makes an actor of the learner."""
    publisher, transport, rounds = self._find(context)
    network = self._make_network()
    timeout_seconds = self._session.experiment.timeout_seconds
    step_budget = None
    if rounds is None:
      variable_client = variables.LocalVariableClient(
        publisher, network.variables
      )
    else:
      first, context = context.stop, _finish_rounds(context)
      step_budget = rounds_lib.RoundBudget(rounds, index, first, context.stop)
      variable_client = variables.ScheduledVariableClient(
        publisher,
        network.variables,
        period=rounds.schedule.period,
        first_round=rounds.restored.number,
        version_of=rounds.schedule.version_of,
        timeout_seconds=timeout_seconds,
        stop=context.stop,
      )
    wait = local.WaitPolicy(timeout_seconds, context.stop)
    turn = None if self._num_round_robin is None else index
    transport = transport.at(wait, turn)
    made = actor_lib.ActorNode(
      context,
      self._session,
      environment_ids,
      network=network,
      variable_client=variable_client,
      transport=transport,
      step_budget=step_budget,
    )
    if step_budget is not None:
      with contextlib.ExitStack() as unless_restored:
        unless_restored.callback(made.close)
        step_budget.admit(made)
        unless_restored.pop_all()
    return made

  def _make_network(self) -> Any:
    # Only after the learner's network: both draw from the same random seed.
    return self._session.experiment.builder.make_network(self._session.spec)

  def _find(self, context: node.Context):
    """Waits for publisher, transport and rounds of the learner."""
    context.report_start(f'waiting for {kinds.LEARNER.name}')
    return starts.wait_for(
      lambda: self._made,
      f"node '{kinds.LEARNER.name}' to be made",
      coordinator=context.coordinator,
      asks=context.name,
      timeout_seconds=self._session.experiment.timeout_seconds,
      stop=context.stop,
    )

  def _make_rounds(
    self,
    publisher: variables.Publisher,
    transport: transports.InProcessTransport,
    stop: signals.StopSignal,
  ) -> rounds_lib.Rounds:
    """Makes the rounds, from the first or from that of the checkpoint."""
    session = self._session
    experiment, experience = session.experiment, session.experience
    schedule = rounds_lib.Schedule(
      cast(adders.Sequences, experience.items).stride,
      experiment.num_environments,
      experience.batch_size,
    )
    restored = rounds_lib.Restored.read(transport.actors.restored)
    publisher.keep(schedule.num_versions)
    publisher.restore(restored.versions)
    rounds = rounds_lib.Rounds(
      schedule,
      self._num_actors,
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


def _finish_rounds(context: node.Context) -> node.Context:
  """Returns a context whose stop signal lets the current round end first.

  After a failure of any node the round cannot end, so there is no delay.
  """

  def is_without_failure() -> bool:
    try:
      return context.coordinator.failure() is None
    except Exception:  # The coordinator may have ended.
      return False

  late = signals.LateSignal(context.stop, _FINISH_SECONDS, is_without_failure)
  return dataclasses.replace(context, stop=late)


def supports_lockstep(experience: experience_lib.Experience) -> bool:
  """Returns whether acting and learning can follow a schedule."""
  items = experience.items
  is_unrolls = isinstance(items, adders.Sequences) and items.are_unrolls
  return is_unrolls and _inserts_round_robin(experience)


def _inserts_round_robin(experience: experience_lib.Experience) -> bool:
  return experience.table.is_queue and experience.items.slots_end_together
