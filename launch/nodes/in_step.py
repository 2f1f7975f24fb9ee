"""Acting and learning that keep step, from checkpoint to checkpoint."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple, cast

import tensorflow as tf

from repertory.components import adders, roads, signals, variables
from repertory.launch.nodes import actor as actor_lib
from repertory.launch.nodes import node as node_lib
from repertory.launch.nodes import round_snapshots
from repertory.launch.nodes import rounds as rounds_lib
from repertory.launch.runs import session as session_lib

# How long all may take to come to the end of a round when the run is to stop.
_FINISH_SECONDS = 5.0


class InStep(NamedTuple):
  """What those who act share if nothing may depend on who is faster.

  Attributes:
    rounds: In which they act.
    snapshots: What is saved of them.
    restored: Where a checkpoint has them.
  """

  rounds: rounds_lib.Rounds
  snapshots: round_snapshots.RoundSnapshots
  restored: round_snapshots.Restored

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
    self,
    index: int,
    actor: actor_lib.ActorNode,
    leases: rounds_lib.RoundLeases,
  ) -> None:
    """Lets an actor begin where it was, and be in what is saved."""
    deposit = self.restored.deposits.get(index)
    if deposit is not None:
      actor.restore(deposit.saved)
      leases.begin_with(deposit.steps)
    # What cannot be saved is told now rather than later.
    if self.snapshots.is_possible and actor.save() is None:
      self.snapshots.give_up()

    def make_deposit(steps: int) -> round_snapshots.Deposit | None:
      actor.flush()
      saved = actor.save()
      if saved is None:
        return None
      return round_snapshots.Deposit(steps, actor.total_episodes, saved)

    def arrive(number: int, steps: int, goes_on: bool) -> None:
      make = functools.partial(make_deposit, steps)
      self.snapshots.arrive(index, number, goes_on, make)

    leases.arrive = arrive


def make(
  session: session_lib.Session,
  publisher: variables.Publisher,
  road: roads.LocalRoad,
  *,
  num_actors: int,
  lag: int,
  stop: signals.StopSignal,
) -> InStep:
  """Begins with the first round, or with that of a checkpoint.

  Args:
    publisher: The learner's, which has been restored.
    road: Likewise; its items are unrolls.
    num_actors: Who act.
    lag: Rounds by which acting is behind learning, see `rounds.Schedule`.
    stop: Ends the learner's waits.
  """
  experiment, experience = session.experiment, session.experience
  schedule = rounds_lib.Schedule(
    cast(adders.Sequences, experience.items).stride,
    experiment.num_environments,
    experience.batch_size,
    lag,
  )
  restored = round_snapshots.Restored.read(road.actors.restored)
  publisher.keep(schedule.num_versions)
  publisher.restore(restored.versions)
  rounds = rounds_lib.Rounds(
    schedule,
    num_actors,
    experiment.max_steps,
    experiment.timeout_seconds,
    restored.beginning,
  )
  snapshots = round_snapshots.RoundSnapshots(
    rounds,
    publisher,
    num_episodes=session.counts['episodes'],
    timeout_seconds=experiment.timeout_seconds,
    stop=stop,
  )
  if experiment.checkpoint_replay:
    road.actors.source = snapshots
  else:
    snapshots.give_up()
  return InStep(rounds, snapshots, restored)


def finish_rounds(context: node_lib.Context) -> node_lib.Context:
  """Returns a context that stops later, for rounds to end that have begun.

  But if somebody has failed, they cannot end, and nobody waits for it.
  """

  def has_nobody_failed() -> bool:
    try:
      return context.coordinator.failure() is None
    except Exception:  # It may be gone, or about to go.
      return False

  late = signals.LateSignal(context.stop, _FINISH_SECONDS, has_nobody_failed)
  return dataclasses.replace(context, stop=late)
