"""`repertory runs`: prints a table of runs."""

import os

from absl import flags

from repertory.launch import results
from repertory.launch.cli import command, comparing

_DIRECTORY = 'runs'

_FLAGS = (
  (
    'sort',
    flags.DEFINE_string,
    'directory',
    'Column to sort by; with - before it in descending order.',
  ),
  ('format', flags.DEFINE_string, 'text', 'Format: text, csv or json.'),
)


def _runs(values, settings, positional) -> int:
  command.expect_no_settings(settings, '`runs` takes no config settings')
  if not positional and not os.path.isdir(_DIRECTORY):
    raise ValueError(
      f"There is no folder '{_DIRECTORY}' here; `repertory train` makes it. "
      'Name another one: repertory runs DIR.'
    )
  # Checks the flags before anything is read.
  results.table([], values.sort, values.format)
  found = results.find(positional or [_DIRECTORY])
  print(results.table(found.runs, values.sort, values.format))
  comparing.print_notes(found)
  return command.DONE


command.REGISTRY.register(
  'runs',
  command.Command(
    '[DIR...] [--sort=COLUMN] [--format=text|csv|json]',
    f"Lists the runs in folders, '{_DIRECTORY}' if none is given.",
    _FLAGS,
    _runs,
  ),
  rank=2,
)
