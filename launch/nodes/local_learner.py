"""Learner that shares a process with its actors."""

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from repertory.components import adders, transports, variables
from repertory.components.replay import local
from repertory.components.transports import experience as experience_lib
from repertory.launch.coordination import kinds, starts
from repertory.launch.nodes import actor, node, rounds
from repertory.launch.nodes import learner as learner_lib
from repertory.launch.nodes import lockstep as lockstep_lib
from repertory.launch.opening import session as session_lib


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
    lag: int | None = None,
  ):
    """Starts without a learner.

    Args:
      lag: Fixed number of rounds between acting and learning, for deterministic
        runs, see `rounds.Schedule`; None to act with the newest variables. Only
        where `supports_lockstep`.
    """
    self._session = session
    self._num_actors = num_actors
    self._lag = lag
    self._num_round_robin = (
      num_actors if _inserts_round_robin(session.experience) else None
    )
    self._made: _Made | None = None

  def make(self, context: node.Context) -> learner_lib.LearnerNode:
    """Makes the learner in the calling thread, and publishes it to actors."""
    if self._lag is not None:
      context = lockstep_lib.finish_rounds(context)
    transport = self._session.make_in_process_transport(
      context.stop, self._num_round_robin
    )
    with contextlib.ExitStack() as unless_made:
      learner = learner_lib.LearnerNode(context, self._session, transport)
      unless_made.callback(learner.close)
      # Before the first update, which must not overlap with a read.
      publisher = learner.publisher
      lockstep = None
      if self._lag is not None:
        lockstep = lockstep_lib.make(
          self._session,
          publisher,
          transport,
          num_actors=self._num_actors,
          lag=self._lag,
          stop=context.stop,
        )
      unless_made.pop_all()
    self._made = _Made(publisher, transport, lockstep)
    return learner

  def follow(
    self, context: node.Context
  ) -> tuple[Any, variables.LocalVariableClient]:
    """Makes a network, and a client for the learner's newest variables."""
    publisher = self._find(context).publisher
    network = self._make_network()
    return network, variables.LocalVariableClient(publisher, network.variables)

  def make_actor(
    self, context: node.Context, index: int, environment_ids: Sequence[int]
  ) -> actor.ActorNode:
    """Makes an actor of the learner."""
    publisher, transport, lockstep = self._find(context)
    network = self._make_network()
    timeout_seconds = self._session.experiment.timeout_seconds
    step_budget = None
    if lockstep is not None:
      first, context = context.stop, lockstep_lib.finish_rounds(context)
      step_budget = rounds.RoundBudget(lockstep.rounds, first, context.stop)
    wait = local.WaitPolicy(timeout_seconds, context.stop, warning_seconds=None)
    transport = transport.at(wait)
    if self._num_round_robin is not None:
      transport = transport.in_turn(index)
    if lockstep is None:
      variable_client = variables.LocalVariableClient(
        publisher, network.variables
      )
    else:
      variable_client = lockstep.follow(
        publisher, network.variables, timeout_seconds, context.stop
      )
    made = actor.ActorNode(
      context,
      self._session,
      environment_ids,
      network=network,
      variable_client=variable_client,
      transport=transport,
      step_budget=step_budget,
    )
    if lockstep is not None and step_budget is not None:
      with contextlib.ExitStack() as unless_restored:
        unless_restored.callback(made.close)
        lockstep.admit(index, made, step_budget)
        unless_restored.pop_all()
    return made

  def _make_network(self) -> Any:
    # Only after the learner's network: both draw from the same random seed.
    return self._session.experiment.builder.make_network(self._session.spec)

  def _find(self, context: node.Context) -> '_Made':
    context.report_start(f'waiting for {kinds.LEARNER.name}')
    return starts.wait_for(
      lambda: self._made,
      f"node '{kinds.LEARNER.name}' to be made",
      coordinator=context.coordinator,
      asks=context.name,
      timeout_seconds=self._session.experiment.timeout_seconds,
      stop=context.stop,
    )


def supports_lockstep(experience: experience_lib.Experience) -> bool:
  """Returns whether acting and learning can follow a schedule."""
  items = experience.items
  is_unrolls = isinstance(items, adders.Sequences) and items.are_unrolls
  return is_unrolls and _inserts_round_robin(experience)


def _inserts_round_robin(experience: experience_lib.Experience) -> bool:
  return experience.table.is_queue and experience.items.slots_end_together


class _Made(NamedTuple):
  """Parts of the learner that actors use.

  Attributes:
    publisher: Publisher of the learner's variables.
    transport: Transport of experience.
    lockstep: Rounds of a deterministic run; None without a lag.
  """

  publisher: variables.Publisher
  transport: transports.InProcessTransport
  lockstep: lockstep_lib.Lockstep | None
