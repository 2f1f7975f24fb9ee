"""Node graphs of services."""

from repertory.launch.launchers import conformance
from repertory.launch.launchers import node_graph as node_graph_lib

SECONDS = 60


def plan(count):
  """Returns a graph of a number of service nodes, 'replay/0' and so on."""
  planned = node_graph_lib.NodeGraph(float(SECONDS))
  for index in range(count):
    node = node_graph_lib.PlannedNode(f'replay/{index}', conformance._Service)
    planned.add(node)
  return planned
