"""`repertory report`: runs compared on one page."""

from absl import flags

from repertory.launch import records
from repertory.launch.commands import command, comparing

_FLAGS = (
  (
    'output',
    flags.DEFINE_string,
    'report.html',
    'The file to write; its name ends with .html.',
  ),
  *comparing.FLAGS,
)


def _report(values, settings, positional) -> int:
  command.expect_no_settings(settings, '`report` takes no config settings')
  report = records.report
  report.check(values.output, values.over, values.statistic)
  found = comparing.find(positional, 'report')
  report.write(found, values.output, values.over, values.statistic)
  print(f'Report: {values.output}')
  comparing.tell(found)
  return command.DONE


command.REGISTRY.register(
  'report',
  command.Command(
    'DIR... [--output=FILE.html]',
    'Writes a page that compares runs: curves, settings, speed, troubles.',
    _FLAGS,
    _report,
  ),
  rank=4,
)
