"""Whether a checkpoint is of the same experiment."""

import re
from collections.abc import Mapping
from typing import Any

from repertory.components import checkpointing

# Begins the names under which tables are part of an identity.
_TABLE = 'table.'
# Between the parts of a table's description: not within the parentheses of a
# shape or of a rate limit.
_BETWEEN_PARTS = re.compile(r', (?![^()]*\))')


def check_identity(
  checkpoint: checkpointing.Checkpoint, identity: Mapping[str, Any]
) -> None:
  """Refuses to go on from a checkpoint of another experiment.

  Raises:
    CheckpointError: Naming every field that differs; not what is another
      anyway, as settings and tables are of another agent, and tables of another
      environment.
  """
  found = checkpoint.state['experiment']
  # What follows from something else that differs.
  following = ()
  if found.get('builder') != identity.get('builder'):
    following = tuple(name for name in found | identity if '.' in name)
  elif found.get('environment') != identity.get('environment'):
    following = tuple(n for n in found | identity if n.startswith(_TABLE))
  names = [
    name
    for name in sorted(found.keys() | identity.keys())
    if found.get(name) != identity.get(name) and name not in following
  ]
  # Tables follow from settings; their own differences are told without these.
  names = [n for n in names if not n.startswith(_TABLE)] or names
  if names:
    differences = [
      '{}: {} in the checkpoint, {} now'.format(
        name, *_describe_both(name, found.get(name), identity.get(name))
      )
      for name in names
    ]
    problem = (
      f'Checkpoint {checkpoint.path} is of another experiment: '
      f'{"; ".join(differences)}. Ask for what the checkpoint has'
    )
    raise checkpointing.CheckpointError(
      f'{problem}, choose another directory or storage, or start afresh.',
      for_readers=f'{problem}, or choose another directory.',
      fresh=True,
    )


def _describe_both(name: str, found: Any, now: Any) -> tuple[str, str]:
  """Returns both as words; of tables, which are long, where they differ."""
  one, other = (
    'nothing' if value is None else str(value) for value in (found, now)
  )
  if not name.startswith(_TABLE):
    return one, other
  parts, others = (_BETWEEN_PARTS.split(text) for text in (one, other))
  for end in (0, -1):
    while min(len(parts), len(others)) > 1 and parts[end] == others[end]:
      del parts[end], others[end]
  return ', '.join(parts), ', '.join(others)
