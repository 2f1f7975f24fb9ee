"""Checkpoints of a single actor in the thread of its learner."""

from repertory.components import transports
from repertory.launch.nodes import actor as actor_lib
from repertory.launch.opening import session as session_lib


class OneActor(transports.ActorSnapshots):
  """Snapshots of an actor in the thread of the learner."""

  def __init__(self, actor: actor_lib.ActorNode):
    self._actor = actor
    # So that the warning comes at the start, and once.
    self._can_be_saved = actor.save() is not None

  def take(self) -> transports.ActorState | None:
    saved = self._actor.save() if self._can_be_saved else None
    self._can_be_saved = saved is not None
    return None if saved is None else transports.ActorState(saved)

  def give_up(self) -> None:
    """Takes no more snapshots."""
    self._can_be_saved = False


def restore_actor(
  session: session_lib.Session,
  actor: actor_lib.ActorNode,
  states: transports.ActorStates,
) -> OneActor | None:
  """Restores an actor from a checkpoint, and adds it to the next ones.

  Args:
    session: Session of the run.
    actor: Actor to restore.
    states: Actor states of the checkpoint and its successors.

  Returns:
    Snapshots of the actor; None if checkpoints have no replay.
  """
  if states.restored:
    actor.restore(states.restored)
  if not session.experiment.checkpoint_replay:
    return None
  states.source = source = OneActor(actor)
  return source
