"""Deterministic acting and learning by a schedule of rounds."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple, cast

import tensorflow as tf

from repertory.components import adders, transports, variables
from repertory.components.runtime import signals
from repertory.launch.nodes import actor as actor_lib
from repertory.launch.nodes import node as node_lib
from repertory.launch.nodes import round_snapshots
from repertory.launch.nodes import rounds as rounds_lib
from repertory.launch.opening import session as session_lib

# Timeout of the current round when the run stops.
_FINISH_SECONDS = 5.0


class Lockstep(NamedTuple):
  """Shared state of the actors of a deterministic run.

  Attributes:
    rounds: Rounds of all actors.
    snapshots: Snapshots of rounds and actors.
    restored: State of a checkpoint.
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
  ) -> variables.ScheduledVariableClient:
    """Returns a variable client that follows the schedule."""
    schedule = self.rounds.schedule
    return variables.ScheduledVariableClient(
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
    step_budget: rounds_lib.RoundBudget,
  ) -> None:
    """Restores an actor, and adds it to snapshots."""
    deposit = self.restored.deposits.get(index)
    if deposit is not None:
      actor.restore(deposit.saved)
      step_budget.begin_with(deposit.steps)
    # So that the warning comes at the start.
    if self.snapshots.is_possible and actor.save() is None:
      self.snapshots.give_up()

    def make_deposit(steps: int) -> round_snapshots.ActorDeposit | None:
      actor.flush()
      saved = actor.save()
      if saved is None:
        return None
      return round_snapshots.ActorDeposit(steps, actor.total_episodes, saved)

    def arrive(number: int, steps: int, takes_place: bool) -> None:
      make = functools.partial(make_deposit, steps)
      self.snapshots.arrive(index, number, takes_place, make)

    step_budget.arrive = arrive


def make(
  session: session_lib.Session,
  publisher: variables.Publisher,
  transport: transports.InProcessTransport,
  *,
  num_actors: int,
  lag: int,
  stop: signals.StopSignal,
) -> Lockstep:
  """Makes the rounds, starting with the first or with that of a checkpoint.

  Args:
    transport: Restored transport; its items are unrolls.
    lag: Rounds between acting and learning, see `rounds.Schedule`.
    stop: Signal that ends the learner's waits.
  """
  experiment, experience = session.experiment, session.experience
  schedule = rounds_lib.Schedule(
    cast(adders.Sequences, experience.items).stride,
    experiment.num_environments,
    experience.batch_size,
    lag,
  )
  restored = round_snapshots.Restored.read(transport.actors.restored)
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
    transport.actors.source = snapshots
  else:
    snapshots.give_up()
  return Lockstep(rounds, snapshots, restored)


def finish_rounds(context: node_lib.Context) -> node_lib.Context:
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
