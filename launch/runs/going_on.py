"""What a run must have in common with the checkpoint that it goes on from."""

from repertory.components import checkpointing, roads, stack
from repertory.launch.runs import session as session_lib


def describe_move(checkpoint: checkpointing.Checkpoint) -> str:
  """Says which other stack wrote a checkpoint; '' if it was this one.

  Older checkpoints do not tell theirs, and are taken for this one's.
  """
  now = stack.versions()
  found = checkpoint.state.get('versions', now)
  others = [name for name in now if found.get(name) != now[name]]
  if not others:
    return ''
  there = ', '.join(f'{name} {found.get(name, "unknown")}' for name in others)
  here = ', '.join(f'{name} {now[name]}' for name in others)
  return f'written with {there}, and this is {here}'


def check(
  checkpoint: checkpointing.Checkpoint | None, session: session_lib.Session
) -> None:
  """Refuses a run that would count, or compute, otherwise than without a stop.

  Raises:
    CheckpointError: If environments and experience cannot be what they were.
  """
  if checkpoint is None:
    return
  _check_steps_alike(checkpoint, session)
  if not session.experiment.deterministic:
    return
  problem, advice = _explain_inexact(checkpoint, session)
  if problem:
    raise checkpointing.CheckpointError(
      'A deterministic run cannot go on from checkpoint '
      f'{checkpoint.path}: that {problem}. Leave deterministic out to go on '
      f'all the same, {advice}, or start afresh.',
      fresh=True,
    )


def _explain_inexact(
  checkpoint: checkpointing.Checkpoint, session: session_lib.Session
) -> tuple[str, str]:
  """Says why a run would not go on to the bit, or '', and what helps."""
  state, division = checkpoint.state, session.division
  if moved := describe_move(checkpoint):
    return (
      f'was {moved}; others round otherwise, and cannot read all that was '
      'pickled of environments',
      'go on with the versions that wrote it',
    )
  older = 'remove the folder if there is an older one'
  if not (session.takes_replay_of(checkpoint) and state.get('is_exact')):
    return (
      'lacks the state of the environments. Deterministic runs write it with '
      'checkpoint_replay, if their environments can be pickled, unless they '
      'ended in the middle of a step or round',
      older,
    )
  written_by = state.get('division', '')
  if written_by != division:
    return f"was written by '{written_by}', and this is '{division}'", older
  return '', ''


def _check_steps_alike(
  checkpoint: checkpointing.Checkpoint, session: session_lib.Session
) -> None:
  """Refuses a checkpoint whose steps are of another kind.

  Raises:
    CheckpointError: If they are learner steps there or now, and not both.
  """
  was_offline = session_lib.road_of(checkpoint) == roads.DATA
  if was_offline == (session.road == roads.DATA):
    return
  it, now = ('offline', 'another') if was_offline else ('another', 'offline')
  raise checkpointing.CheckpointError(
    f'Checkpoint {checkpoint.path} is of a run in {it} topology, and this is '
    f'{now}: steps of offline are learner steps, so neither goes on from the '
    'other. Choose another directory: with initial_from, a new run begins '
    'with the networks of this one.',
    fresh=True,
  )
