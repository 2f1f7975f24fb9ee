"""Shared parts of commands that compare runs."""

import sys
from collections.abc import Sequence

from absl import flags

from repertory.launch import results

FLAGS = (
  (
    'over',
    flags.DEFINE_string,
    'steps',
    'x-axis of curves: steps, learner_steps or elapsed_seconds.',
  ),
  (
    'statistic',
    flags.DEFINE_string,
    'mean',
    'Statistic over seeds: mean, or iqm for the interquartile mean.',
  ),
)


def find(positional: Sequence[str], name: str) -> results.Found:
  """Finds the runs in the folders given to a command.

  Args:
    positional: The folders.
    name: Name of the command.

  Raises:
    ValueError: If there are no folders or no runs.
  """
  if not positional:
    raise ValueError(
      f'Name directories of runs, or folders of them: repertory {name} DIR...'
    )
  found = results.find(positional)
  if not found.runs:
    raise ValueError(f'There is no readable run. {found.describe_others()}')
  return found


def print_notes(found: results.Found, notes: Sequence[str] = ()) -> None:
  """Prints folders that were left out, unreadable files, and other notes.

  Args:
    found: The runs, after they were read.
    notes: Further notes on the runs.
  """
  lines = [found.describe_others(), found.describe_problems()]
  if notes:
    lines.insert(0, f'Not drawn: {"; ".join(notes)}.')
  for line in filter(None, lines):
    print(results.wording.text(line), file=sys.stderr)
