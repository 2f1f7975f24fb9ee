"""`repertory runs`, `plot` and `report`: compare runs."""

import os
import sys
from collections.abc import Sequence

from repertory.launch import results
from repertory.launch.cli import command
from repertory.launch.cli.flags import flag

_DIRECTORY = 'runs'
_FLAGS = (
  flag(
    'over',
    'x-axis of curves: steps, learner_steps or elapsed_seconds.',
    'steps',
  ),
  flag(
    'statistic',
    'Statistic over seeds: mean, or iqm for the interquartile mean.',
    'mean',
  ),
)


@command.register(
  'runs',
  2,
  '[DIR...] [--sort=COLUMN] [--format=text|csv|json]',
  f"Lists the runs in folders, '{_DIRECTORY}' if none is given.",
  (
    flag(
      'sort',
      'Column to sort by; with - before it in descending order.',
      'directory',
    ),
    flag('format', 'Format: text, csv or json.', 'text'),
  ),
  takes_arguments=True,
)
def _runs(values, settings, positional) -> int:
  del settings
  if not positional and not os.path.isdir(_DIRECTORY):
    raise ValueError(
      f"There is no folder '{_DIRECTORY}' here; `repertory train` makes it. "
      'Name another one: repertory runs DIR.'
    )
  found = results.find(positional or [_DIRECTORY])
  print(results.table(found.runs, values.sort, values.format))
  _print_notes(found)
  return command.DONE


@command.register(
  'plot',
  3,
  'DIR... [--output=FILE.png|FILE.svg] [--what=return,losses,...]',
  'Plots learning curves of runs, aggregated over seeds.',
  (
    flag('output', 'Output file, which ends with .png or .svg.', 'plot.png'),
    flag(
      'what',
      'Quantities to plot, separated by commas: return (of evaluations), '
      'training_return, losses, ratio (samples per insert), lag (of the '
      'policy), speed, or <log>.<column>, as in learner.loss.',
      ['return'],
    ),
    *_FLAGS,
  ),
  takes_arguments=True,
)
def _plot(values, settings, positional) -> int:
  del settings
  found = _find(positional, 'plot')
  notes = results.plots.plot(
    found.runs, values.output, values.what, values.over, values.statistic
  )
  print(f'Plot: {values.output}')
  _print_notes(found, notes)
  return command.DONE


@command.register(
  'report',
  4,
  'DIR... [--output=FILE.html]',
  'Writes a page that compares runs: curves, settings, speed, incidents.',
  (
    flag('output', 'Output file, which ends with .html.', 'report.html'),
    *_FLAGS,
  ),
  takes_arguments=True,
)
def _report(values, settings, positional) -> int:
  del settings
  found = _find(positional, 'report')
  results.report.write(found, values.output, values.over, values.statistic)
  print(f'Report: {values.output}')
  _print_notes(found)
  return command.DONE


def _find(positional: Sequence[str], name: str) -> results.Found:
  if not positional:
    raise ValueError(
      f'Name directories of runs, or folders of them: repertory {name} DIR...'
    )
  found = results.find(positional)
  if not found.runs:
    raise ValueError(f'There is no readable run. {found.describe_others()}')
  return found


def _print_notes(found: results.Found, notes: Sequence[str] = ()) -> None:
  """Prints folders that were left out, unreadable files, and other notes."""
  lines = [found.describe_others(), found.describe_problems()]
  if notes:
    lines.insert(0, f'Not drawn: {"; ".join(notes)}.')
  for line in filter(None, lines):
    print(results.wording.text(line), file=sys.stderr)
