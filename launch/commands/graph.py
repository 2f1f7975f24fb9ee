"""A topology as a Mermaid graph, read off its wiring."""

from repertory.launch import experiment as experiment_lib
from repertory.launch.runs import session as session_lib
from repertory.launch.topologies import topology as topology_lib


def mermaid(
  experiment: experiment_lib.Experiment, topology: topology_lib.Topology
) -> str:
  """Returns the graph of an experiment; an arrow points from caller to called.

  Args:
    experiment: What would run.
    topology: What would run where.

  Raises:
    ValueError: If the experiment could not run so.
  """
  topology.check(experiment)
  spec = session_lib.check(experiment)
  experience = session_lib.describe_experience(
    experiment, spec, topology.smallest_batch(experiment)
  )
  graph = topology.graph(
    session_lib.Session(experiment, spec, experience, {'runs': 0}, 0.0, False)
  )
  lines, indent = ['flowchart LR'], '  '
  if graph.frame:
    lines.append(f'  subgraph {graph.frame.replace(" ", "_")} [{graph.frame}]')
    indent = '    '
  lines += [f'{indent}{_identifier(node)}["{node}"]' for node in graph.nodes]
  lines += [
    f'{indent}{_identifier(caller)} --> {_identifier(called)}'
    for caller, called in graph.calls
  ]
  if graph.frame:
    lines.append('  end')
  return '\n'.join(lines)


def _identifier(node: str) -> str:
  return node.replace('/', '_')
