"""`repertory report`: compares runs on an HTML page."""

from absl import flags

from repertory.launch import results
from repertory.launch.cli import command, comparing

_FLAGS = (
  (
    'output',
    flags.DEFINE_string,
    'report.html',
    'Output file, which ends with .html.',
  ),
  *comparing.FLAGS,
)


def _report(values, settings, positional) -> int:
  command.expect_no_settings(settings, '`report` takes no config settings')
  report = results.report
  report.check(values.output, values.over, values.statistic)
  found = comparing.find(positional, 'report')
  report.write(found, values.output, values.over, values.statistic)
  print(f'Report: {values.output}')
  comparing.print_notes(found)
  return command.DONE


command.REGISTRY.register(
  'report',
  command.Command(
    'DIR... [--output=FILE.html]',
    'Writes a page that compares runs: curves, settings, speed, incidents.',
    _FLAGS,
    _report,
  ),
  rank=4,
)
