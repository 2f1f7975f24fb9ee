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


def tell(found: records.Found, notes: Sequence[str] = ()) -> None:
  """Prints what was left out: a line for what has no run, and others.

  Args:
    found: The runs, after they were read.
    notes: What else is to be told of them.
  """
  lines = [found.describe_others(), found.describe_problems()]
  if notes:
    lines.insert(0, f'Not drawn: {"; ".join(notes)}.')
  for line in filter(None, lines):
    print(records.wording.text(line), file=sys.stderr)
