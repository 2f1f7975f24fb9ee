"""Acting and learning that keep step, from checkpoint to checkpoint."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple, cast

import tensorflow as tf

from repertory.components import adders, roads, signals, variables
from repertory.launch.nodes import actor, node, round_snapshots
from repertory.launch.nodes import rounds as rounds_lib
from repertory.launch.runs import session as session_lib

# How long all may take to come to the end of a round when the run is to stop.
_FINISH_SECONDS = 5.0


class InStep(NamedTuple):
  """What those who act share if nothing may depend on who is faster.

  Attributes:
    rounds: In which they act.
    snapshots: What is saved of them.
    start: Where they begin.
    company: What is saved together with the table.
  """

  rounds: rounds_lib.Rounds
  snapshots: round_snapshots.RoundSnapshots
  start: round_snapshots.Start
  company: roads.Company

  def follow(
    self,
    publisher: variables.Publisher,
    network_variables: Sequence[tf.Variable],
    timeout_seconds: float,
    stop: signals.StopSignal,
  ) -> variables.ScheduledVariables:
    """Returns what keeps the variables of a network to the schedule."""
    schedule = self.rounds.schedule
    return variables.ScheduledVariables(
      publisher,
      network_variables,
      period=schedule.period,
      first_round=self.rounds.beginning.number,
      version_of=schedule.version_of,
      timeout_seconds=timeout_seconds,
      stop=stop,
    )

  def admit(
    self, index: int, node: actor.ActorNode, leases: rounds_lib.RoundLeases
  ) -> None:
    """Lets a node begin where it was, and be in what is saved."""
    deposit = self.start.deposits.get(index)
    if deposit is not None:
      node.restore(deposit.saved)
      leases.begin_with(deposit.steps)
    if not node.can_save():
      self.snapshots.give_up()
      return

    def make_deposit(steps: int) -> round_snapshots.Deposit:
      node.flush()
      return round_snapshots.Deposit(steps, node.total_episodes, node.save())

    def come(number: int, steps: int, goes_on: bool) -> None:
      make = functools.partial(make_deposit, steps)
      self.snapshots.come(index, number, goes_on, make)

    leases.come = come
    self.company.now = self.snapshots


def make(
  session: session_lib.Session,
  publisher: variables.Publisher,
  road: roads.LocalRoad,
  *,
  version: int,
  num_actors: int,
  lag: int,
  stop: signals.StopSignal,
) -> InStep:
  """Begins with the first round, or with that of a checkpoint.

  Args:
    publisher: The learner's, which has been restored.
    road: Likewise; its items are unrolls.
    version: Learner steps so far.
    num_actors: Who act.
    lag: Rounds by which acting is behind learning, see `rounds.Schedule`.
    stop: Ends the learner's waits.
  """
  experiment = session.experiment
  if road.company.found:
    start = round_snapshots.Start.read(road.company.found)
  else:
    start = _begin(session, road, version, lag)
  publisher.keep(start.schedule.num_versions)
  publisher.restore(start.versions)
  rounds = rounds_lib.Rounds(
    start.schedule,
    num_actors,
    experiment.max_steps - start.steps_at_first,
    experiment.timeout_seconds,
    start.beginning,
  )
  snapshots = round_snapshots.RoundSnapshots(
    rounds,
    publisher,
    num_inserts=road.num_inserts,
    counts=session.counts,
    steps_at_first=start.steps_at_first,
    timeout_seconds=experiment.timeout_seconds,
    stop=stop,
  )
  return InStep(rounds, snapshots, start, road.company)


def _begin(
  session: session_lib.Session, road: roads.LocalRoad, version: int, lag: int
) -> round_snapshots.Start:
  """Returns where the first round of all begins."""
  experience = session.experience
  schedule = rounds_lib.Schedule(
    cast(adders.Sequences, experience.items).stride,
    session.experiment.num_environments,
    experience.batch_size,
    version,
    road.num_items,
    lag,
  )
  return round_snapshots.Start(
    schedule, rounds_lib.Beginning(), session.counts['steps'], {}, []
  )


def finish_rounds(context: node.Context) -> node.Context:
  """Returns a context that stops later, for rounds to end that have begun."""
  late = signals.LateSignal(context.stop, _FINISH_SECONDS)
  return dataclasses.replace(context, stop=late)
