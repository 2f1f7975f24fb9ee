"""Node graphs of services, and checks of launchers."""

from repertory.components.runtime import network_interfaces
from repertory.launch.launchers import calls, conformance
from repertory.launch.launchers import node_graph as node_graph_lib

SECONDS = 60


def plan(count):
  """Returns a graph of a number of service nodes, 'replay/0' and so on."""
  planned = node_graph_lib.NodeGraph(float(SECONDS))
  for index in range(count):
    node = node_graph_lib.PlannedNode(f'replay/{index}', conformance._Service)
    planned.add(node)
  return planned


def check_ports(launch, directory):
  """Checks that ports of services stay reserved until the block ends."""
  planned = plan(2)
  with launch(planned, str(directory)) as workers:
    numbers = []
    for name in planned.names:
      client = workers.client(name)
      calls.wait_for_server(client)
      numbers.append(int(client.address.split(':')[1]))
      client.futures.shutdown().result(SECONDS)
    assert len(set(numbers)) == 2
    workers.wait_for_end(SECONDS)
    assert set(workers.find_ended()) == set(planned.names)
    # Reserved by this process, so a restarted service finds it free.
    for number in numbers:
      assert list(network_interfaces._sockets_at(number))
  for number in numbers:
    assert not list(network_interfaces._sockets_at(number))
