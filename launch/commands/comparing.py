"""What commands that compare runs have in common."""

import sys
from collections.abc import Sequence

from absl import flags

from repertory.launch import records

FLAGS = (
  (
    'over',
    flags.DEFINE_string,
    'steps',
    'What curves go over: steps, learner_steps or elapsed_seconds.',
  ),
  (
    'statistic',
    flags.DEFINE_string,
    'mean',
    'Over seeds: mean, or iqm for the interquartile mean.',
  ),
)


def find(positional: Sequence[str], name: str) -> records.Found:
  """Finds the runs in the folders that a command is given.

  Args:
    positional: The folders.
    name: The command's.

  Raises:
    ValueError: If there is none.
  """
  if not positional:
    raise ValueError(
      f'Name folders of runs, or with runs in them: repertory {name} DIR...'
    )
  found = records.find(positional)
  if not found.runs:
    raise ValueError(f'There is no run to be read. {found.describe_others()}')
  return found


def tell(notes: Sequence[str], found: records.Found) -> None:
  """Prints what was left out, on one line each."""
  if notes:
    print(f'Not drawn: {"; ".join(notes)}.', file=sys.stderr)
  if others := found.describe_others():
    print(others, file=sys.stderr)
