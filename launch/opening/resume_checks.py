"""Checks that a run can resume from a checkpoint."""

from collections.abc import Mapping
from typing import Any

from repertory.agents.reward_models import reward_model_config
from repertory.components import transports
from repertory.components.checkpoints import checkpointing
from repertory.components.runtime import versions
from repertory.launch.opening import session as session_lib


def check_identity(
  checkpoint: checkpointing.Checkpoint, identity: Mapping[str, Any]
) -> None:
  """Raises CheckpointError for one of another experiment, with differences."""
  found = reward_model_config.with_present_names(checkpoint.state['experiment'])
  names = [
    name
    for name in sorted(found.keys() | identity.keys())
    if found.get(name) != identity.get(name)
  ]
  if 'builder' in names:  # Its settings differ, too; so do its tables.
    names = [name for name in names if '.' not in name]
  names = [n for n in names if not n.startswith('table.')] or names
  if not names:
    return
  differences = [
    f'{name}: {found.get(name, "nothing")} in the checkpoint, '
    f'{identity.get(name, "nothing")} now'
    for name in names
  ]
  raise checkpointing.CheckpointError(
    f'Checkpoint {checkpoint.path} is of another experiment: '
    f'{"; ".join(differences)}. Use the settings of the checkpoint, or choose '
    'another directory.',
    fresh=True,
  )


def describe_move(checkpoint: checkpointing.Checkpoint) -> str:
  """Names the versions that wrote a checkpoint, if others than these; or ''."""
  now = versions.versions()
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
  """Raises if the resumed run would count steps, or compute, differently.

  Raises:
    CheckpointError: If exactly one of the two runs counts learner steps, or a
      deterministic run could not restore its environments and experience.
  """
  if checkpoint is None:
    return
  was_offline = session_lib.transport_of(checkpoint) == transports.OFFLINE
  if was_offline != (session.transport == transports.OFFLINE):
    it, now = ('offline', 'another') if was_offline else ('another', 'offline')
    raise checkpointing.CheckpointError(
      f'Checkpoint {checkpoint.path} is of a run in {it} topology, and this is '
      f'{now}: steps of offline are learner steps, so neither resumes from the '
      'other. Choose another directory: with initial_from, a new run begins '
      'with the networks of this one.',
      fresh=True,
    )
  if not session.experiment.deterministic:
    return
  problem, advice = _explain_inexact(checkpoint, session)
  if problem:
    raise checkpointing.CheckpointError(
      'A deterministic run cannot resume from checkpoint '
      f'{checkpoint.path}: that {problem}. Leave deterministic out to resume '
      f'all the same, or {advice}.',
      fresh=True,
    )


def _explain_inexact(
  checkpoint: checkpointing.Checkpoint, session: session_lib.Session
) -> tuple[str, str]:
  """Returns why a run would not resume bit by bit, or '', and a remedy."""
  state, sharding = checkpoint.state, session.sharding
  if moved := describe_move(checkpoint):
    return (
      f'was {moved}; other versions round differently, and may not unpickle '
      'environments',
      'resume with the versions that wrote it',
    )
  older = 'remove its folder if there is an older one'
  if not (session.takes_replay_of(checkpoint) and state.get('is_exact')):
    return (
      'lacks the state of the environments. Deterministic runs write it with '
      'checkpoint_replay, if their environments can be pickled, unless they '
      'ended in the middle of a step or round',
      older,
    )
  written_by = state.get('sharding', state.get('division', ''))
  if written_by != sharding:
    return f"was written by '{written_by}', and this is '{sharding}'", older
  return '', ''
