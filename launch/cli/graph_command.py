"""`repertory graph`: prints the graph of nodes and calls."""

from repertory import launch
from repertory.launch.cli import command, factory
from repertory.launch.cli import flags as flag_tables
from repertory.launch.topologies import topology as topology_lib


@command.register(
  'graph',
  10,
  '--agent=AGENT --topology=TOPOLOGY [--num_actors=N]',
  'Prints the graph of nodes and their calls, as Mermaid.',
  flag_tables.EXPERIMENT_FLAGS,
  takes_settings=True,
)
def _graph(values, settings, positional) -> int:
  del positional
  topology = factory.make_topology(values)
  experiment = factory.make_experiment(values, settings)
  plan = launch.opening.plan.make_plan(experiment, topology)
  session = launch.opening.directory.make_session(plan, plan.options[0])
  graph = topology.call_graph(session)
  lines, indent = ['flowchart LR'], '  '  # Arrows go from caller to callee.
  if graph.frame:
    lines.append(f'  subgraph {graph.frame.replace(" ", "_")} [{graph.frame}]')
    indent = '    '
  lines += [indent + line for line in _node_lines(graph)]
  lines += [
    f'{indent}{_identifier(caller)} --> {_identifier(called)}'
    for caller, called in graph.calls
  ]
  if graph.frame:
    lines.append('  end')
  print('\n'.join(lines))
  return command.DONE


def _node_lines(graph: topology_lib.Graph) -> list[str]:
  """Returns the lines of nodes, with a frame around each shared process."""
  members_of = {members[0]: members for members in graph.shared}
  framed = {name for members in graph.shared for name in members}
  lines = []
  for node in graph.nodes:
    if node in members_of:
      name = _identifier(node)
      lines.append(f'subgraph beside_{name} [{node} and beside it]')
      lines += [f'  {_node_line(member)}' for member in members_of[node]]
      lines.append('end')
    elif node not in framed:
      lines.append(_node_line(node))
  return lines


def _node_line(node: str) -> str:
  return f'{_identifier(node)}["{node}"]'


def _identifier(node: str) -> str:
  return node.replace('/', '_')
