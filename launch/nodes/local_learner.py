"""A learner in one process with those who act for it."""

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from repertory.components import adders, roads, variables
from repertory.components import experience as experience_lib
from repertory.components.replay import local
from repertory.launch.coordination import kinds, starts
from repertory.launch.nodes import actor, node, rounds
from repertory.launch.nodes import in_step as in_step_lib
from repertory.launch.nodes import learner as learner_lib
from repertory.launch.runs import session as session_lib


class LocalLearner:
  """Where nodes of one process, in threads of their own, find the learner.

  Items go to it, and variables come from it, in memory. Whoever looks for it
  before it is made waits. It is for one launch of a program; each node's own
  stop signal ends its waits, so that who failed stops nobody else before the
  coordinator does.

  If unrolls of all environments end together, actors put theirs in turn: so
  none is further ahead of the slowest than by what may be on its way.
  """

  def __init__(
    self,
    session: session_lib.Session,
    num_actors: int,
    lag: int | None = None,
  ):
    """Makes nothing yet.

    Args:
      num_actors: Nodes that are to act.
      lag: Rounds of unrolls by which acting is behind learning, always, so that
        nothing depends on who is faster, see `rounds.Schedule`; None to act
        with the newest variables there are. Only for a queue of unrolls that
        end together.

    Raises:
      ValueError: If there is a lag without such a queue.
    """
    self._session = session
    self._num_actors = num_actors
    self._lag = lag
    experience = session.experience
    if lag is not None and not can_keep_step(experience):
      raise ValueError(
        'lag must be None but for a queue of unrolls that go on across '
        f'episodes, end to end; got {lag} for {experience.items}.'
      )
    self._num_turns = num_actors if _can_take_turns(experience) else None
    self._made: _Made | None = None

  def make(self, context: node.Context) -> learner_lib.LearnerNode:
    """Makes the learner, in its own thread, and lets others find it."""
    if self._lag is not None:
      context = in_step_lib.finish_rounds(context)
    road = self._session.make_local_road(context.stop, self._num_turns)
    with contextlib.ExitStack() as unless_made:
      learner = learner_lib.LearnerNode(context, self._session, road)
      unless_made.callback(learner.close)
      # Now, for nobody may read the variables while the learner writes to them.
      publisher = learner.publisher
      in_step = None
      if self._lag is not None:
        in_step = in_step_lib.make(
          self._session,
          publisher,
          road,
          num_actors=self._num_actors,
          lag=self._lag,
          stop=context.stop,
        )
      unless_made.pop_all()
    self._made = _Made(publisher, road, in_step)
    return learner

  def follow(
    self, context: node.Context
  ) -> tuple[Any, variables.PublishedVariables]:
    """Makes a network whose variables are the newest of the learner.

    Returns:
      The network, and what keeps it fresh.

    Raises:
      signals.Stopped: If the run stops before the learner is made.
      TimeoutError: If the learner was not made in time.
    """
    publisher = self._find(context).publisher
    network = self._make_network()
    return network, variables.PublishedVariables(publisher, network.variables)

  def make_actor(
    self, context: node.Context, index: int, environment_ids: Sequence[int]
  ) -> actor.ActorNode:
    """Makes a node that acts for the learner.

    Args:
      index: Which of those that act it is.
      environment_ids: Which environments it steps.

    Raises:
      signals.Stopped: If the run stops before the learner is made.
      TimeoutError: If the learner was not made in time.
    """
    publisher, road, in_step = self._find(context)
    network = self._make_network()
    timeout_seconds = self._session.experiment.timeout_seconds
    leases = None
    if in_step is not None:
      first, context = context.stop, in_step_lib.finish_rounds(context)
      leases = rounds.RoundLeases(in_step.rounds, first, context.stop)
    place = local.Place(timeout_seconds, context.stop, warning_seconds=None)
    road = road.at(place)
    if self._num_turns is not None:
      road = road.in_turn(index)
    if in_step is None:
      followed = variables.PublishedVariables(publisher, network.variables)
    else:
      followed = in_step.follow(
        publisher, network.variables, timeout_seconds, context.stop
      )
    made = actor.ActorNode(
      context,
      self._session,
      environment_ids,
      network=network,
      followed=followed,
      road=road,
      leases=leases,
    )
    if in_step is not None and leases is not None:
      with contextlib.ExitStack() as unless_restored:
        unless_restored.callback(made.close)
        in_step.admit(index, made, leases)
        unless_restored.pop_all()
    return made

  def _make_network(self) -> Any:
    # Not before the learner's own: both draw from the same random numbers.
    return self._session.experiment.builder.make_network(self._session.spec)

  def _find(self, context: node.Context) -> '_Made':
    context.tell_start(f'waiting for {kinds.LEARNER.name}')
    return starts.wait_for(
      lambda: self._made,
      f"node '{kinds.LEARNER.name}' to be made",
      coordinator=context.coordinator,
      asks=context.name,
      timeout_seconds=self._session.experiment.timeout_seconds,
      stop=context.stop,
    )


def can_keep_step(experience: experience_lib.Experience) -> bool:
  """Returns whether acting and learning can follow a schedule."""
  items = experience.items
  is_unrolls = isinstance(items, adders.Sequences) and items.are_unrolls
  return is_unrolls and _can_take_turns(experience)


def _can_take_turns(experience: experience_lib.Experience) -> bool:
  return experience.table.is_queue and experience.items.slots_end_together


class _Made(NamedTuple):
  """What there is of the learner for others.

  Attributes:
    in_step: In which rounds they act; None if each acts as it likes.
  """

  publisher: variables.Publisher
  road: roads.LocalRoad
  in_step: in_step_lib.InStep | None
