"""`repertory graph`: prints the graph of nodes and calls."""

from repertory.launch import cli
from repertory.launch.cli import command, factory
from repertory.launch.cli import flags as flag_tables


def _graph(values, settings, positional) -> int:
  command.expect_no_arguments(positional)
  topology = factory.make_topology(values)
  experiment = factory.make_experiment(values, settings)
  print(cli.graph.mermaid(experiment, topology))
  return command.DONE


command.REGISTRY.register(
  'graph',
  command.Command(
    '--agent=AGENT --topology=TOPOLOGY [--num_actors=N]',
    'Prints the graph of nodes and their calls, as Mermaid.',
    flag_tables.EXPERIMENT_FLAGS,
    _graph,
  ),
  rank=10,
)
