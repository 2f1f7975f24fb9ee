"""Handling of changed data sets in a resumed run."""

from collections.abc import Sequence

from repertory.components.checkpoints import checkpointing
from repertory.launch.nodes import node
from repertory.launch.opening import session as session_lib


def report(
  context: node.Context, session: session_lib.Session, paths: Sequence[str]
) -> None:
  """Warns, in a resumed run, that sampling of the data sets restarts.

  Args:
    paths: Folders of the data sets.

  Raises:
    CheckpointError: If the run is deterministic.
  """
  if not session.is_resumed:
    return
  if session.experiment.deterministic:
    raise checkpointing.CheckpointError(
      'A deterministic run can only resume with the same data: those of '
      f'{", ".join(paths)} have changed. Leave deterministic out to resume '
      'nevertheless, or start afresh.',
      fresh=True,
    )
  context.coordinator.warn(
    context.name,
    'sampling of the data restarts: the checkpoint has no state for them',
  )
