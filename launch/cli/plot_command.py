"""`repertory plot`: plots learning curves of runs."""

from absl import flags

from repertory.launch import results
from repertory.launch.cli import command, comparing

_FLAGS = (
  (
    'output',
    flags.DEFINE_string,
    'plot.png',
    'Output file, which ends with .png or .svg.',
  ),
  (
    'what',
    flags.DEFINE_list,
    ['return'],
    'Quantities to plot, separated by commas: return (of evaluations), '
    'training_return, losses, ratio (of samples per insert to its target), '
    'lag (of the policy), speed, or <log>.<column>, as in learner.loss.',
  ),
  *comparing.FLAGS,
)


def _plot(values, settings, positional) -> int:
  command.expect_no_settings(settings, '`plot` takes no config settings')
  plots = results.plots
  plots.check(values.output, values.over, values.statistic)
  found = comparing.find(positional, 'plot')
  notes = plots.plot(
    found.runs, values.output, values.what, values.over, values.statistic
  )
  print(f'Plot: {values.output}')
  comparing.print_notes(found, notes)
  return command.DONE


command.REGISTRY.register(
  'plot',
  command.Command(
    'DIR... [--output=FILE.png|FILE.svg] [--what=return,losses,...]',
    'Plots learning curves of runs, aggregated over seeds.',
    _FLAGS,
    _plot,
  ),
  rank=3,
)
