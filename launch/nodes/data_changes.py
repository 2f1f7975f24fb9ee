"""What becomes of a run that goes on with other data than before."""

from collections.abc import Sequence

from repertory.components import checkpointing
from repertory.launch.nodes import node
from repertory.launch.runs import session as session_lib


def tell(
  context: node.Context, session: session_lib.Session, paths: Sequence[str]
) -> None:
  """Tells that data are drawn anew, if the run is resumed.

  Args:
    paths: Folders of the data.

  Raises:
    CheckpointError: If it has to go on exactly.
  """
  if not session.is_resumed:
    return
  if session.experiment.deterministic:
    raise checkpointing.CheckpointError(
      'A deterministic run goes on with the same data alone: those of '
      f'{", ".join(paths)} have changed since. Leave deterministic out to go '
      'on all the same, or start afresh.',
      fresh=True,
    )
  context.coordinator.warn(
    context.name,
    'data are drawn anew: the checkpoint has no draws of these',
  )
