"""One actor in the thread of its learner, from checkpoint to checkpoint."""

from repertory.components import roads
from repertory.launch.nodes import actor as actor_lib
from repertory.launch.runs import session as session_lib


class OneActor(roads.ActorSnapshots):
  """Saves an actor, in the same thread as the learner."""

  def __init__(self, actor: actor_lib.ActorNode):
    self._actor = actor
    # Told at the start already, and then no more.
    self._can_be_saved = actor.save() is not None

  def take(self) -> roads.Moment | None:
    saved = self._actor.save() if self._can_be_saved else None
    self._can_be_saved = saved is not None
    return None if saved is None else roads.Moment(saved)

  def give_up(self) -> None:
    """Saves nothing from now on."""
    self._can_be_saved = False


def go_on_exactly(
  session: session_lib.Session,
  actor: actor_lib.ActorNode,
  states: roads.ActorStates,
) -> OneActor | None:
  """Lets an actor begin where a checkpoint has it, and be in the next ones.

  Args:
    states: What is saved with the table.

  Returns:
    What saves it; None if checkpoints have no replay.
  """
  if states.restored:
    actor.restore(states.restored)
  if not session.experiment.checkpoint_replay:
    return None
  states.source = source = OneActor(actor)
  return source
