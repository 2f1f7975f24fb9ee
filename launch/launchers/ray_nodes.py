"""Launch of a node graph on a Ray cluster."""

import contextlib
import os
from collections.abc import Iterator, Mapping

from absl import logging

from repertory.launch.launchers import node_graph as node_graph_lib
from repertory.launch.launchers import ray_cluster, ray_placement, ray_workers
from repertory.launch.platform import printed


@contextlib.contextmanager
def launch(
  program: node_graph_lib.NodeGraph,
  log_directory: str,
  *,
  address: str = '',
  resources: Mapping[str, Mapping[str, float]] | None = None,
  network: str = '',
  allows_public: bool = False,
) -> Iterator[ray_workers.RayWorkers]:
  """Launches a node graph; see `launcher.Launcher.launch`.

  Args:
    program: The node graph.
    log_directory: Folder for the output of nodes.
    address: Address of the cluster's head, see `ray_cluster.connected`.
    resources: Resources per node, see `ray_placement.Placement`.
    network: Network between hosts, likewise.
    allows_public: Whether hosts may have public addresses, likewise.
  """
  printed.set_aside(log_directory)
  with ray_cluster.connected(address) as heartbeat:
    placement = ray_placement.Placement(
      program, resources or {}, network, allows_public
    )
    paths = {
      name: os.path.join(log_directory, label)
      for name, label in program.labels.items()
    }
    workers = ray_workers.RayWorkers(program, placement, heartbeat, paths)
    try:
      workers.begin()
      yield workers
    finally:
      for name in workers.end():
        logging.warning('%s did not end.', name)
