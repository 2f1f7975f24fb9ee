"""Checks that a checkpoint belongs to the same experiment."""

import re
from collections.abc import Mapping
from typing import Any

from repertory.agents.reward_models import reward_model_config
from repertory.components.checkpoints import checkpointing

# Prefix of tables' names in an identity.
_TABLE = 'table.'
# Separator in a table's description, outside of the parentheses of shapes and
# rate limits.
_BETWEEN_PARTS = re.compile(r', (?![^()]*\))')


def check_identity(
  checkpoint: checkpointing.Checkpoint, identity: Mapping[str, Any]
) -> None:
  """Raises for a checkpoint of another experiment.

  Raises:
    CheckpointError: Naming every field that differs, except those that follow
      from another difference: settings and tables from the agent, tables from
      the environment.
  """
  found = reward_model_config.with_present_names(checkpoint.state['experiment'])
  # Fields that follow from another one that differs.
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
  # Tables follow from settings, so they are named only if no setting differs.
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
      f'{"; ".join(differences)}. Use the settings of the checkpoint'
    )
    raise checkpointing.CheckpointError(
      f'{problem}, choose another directory or storage, or start afresh.',
      for_readers=f'{problem}, or choose another directory.',
      fresh=True,
    )


def _describe_both(name: str, found: Any, now: Any) -> tuple[str, str]:
  """Returns both as text; of tables, only the parts that differ."""
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
