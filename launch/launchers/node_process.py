"""Process that runs one node."""

import contextlib
import dataclasses
import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any

import cloudpickle
from absl import flags, logging

from repertory.components.network import callers, network_interfaces
from repertory.launch.coordination import kinds
from repertory.launch.launchers import calls, node_runner
from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.launchers import rpc as rpc_lib
from repertory.launch.platform import child_processes


@dataclasses.dataclass(frozen=True)
class NodeLaunchSpec:
  """Launch spec of a node in a thread or process."""

  plan: launcher_lib.PlannedNode
  peers: Mapping[str, str]  # Addresses of the nodes it may call.
  rpc: rpc_lib.Rpc
  port: int | None  # None if it does not serve.
  interface: network_interfaces.Interface = network_interfaces.LOOPBACK
  generation: int = 0  # Number of earlier starts in this run.

  @property
  def address(self) -> str | None:
    """Address of its server; None if it does not serve."""
    return None if self.port is None else self.interface.address(self.port)

  @property
  def task(self) -> bytes:
    """Pickled task of a process for the node."""
    return cloudpickle.dumps(functools.partial(run, self))

  def make_runner(self, can_restart: bool) -> node_runner.NodeRunner:
    """Makes the runner of the node, with its clients."""
    peers = {name: self.rpc.make_client(at) for name, at in self.peers.items()}
    if (name := kinds.COORDINATOR.name) in peers:
      caller = callers.Caller(self.plan.name, self.generation, self.rpc.token)
      peers[name] = calls.AuthenticatedClient(peers[name], caller)
    return node_runner.NodeRunner(
      self.plan,
      peers,
      generation=self.generation,
      token=self.rpc.token,
      can_restart=can_restart,
      interface=self.interface,
    )

  def serve(
    self, served: Mapping[str, Callable[..., Any]]
  ) -> contextlib.AbstractContextManager[None]:
    """Serves methods while the block runs, if the node serves."""
    if self.port is None:
      return contextlib.nullcontext()
    return self.rpc.serving(self.port, served, self.interface)


def run(launch_spec: NodeLaunchSpec) -> None:
  """Runs a node in this process, which its launcher has started for it."""
  child_processes.set_up_node(launcher=int(sys.argv[1]))
  if not flags.FLAGS.is_parsed():
    flags.FLAGS.mark_as_parsed()
  logging.set_verbosity(logging.WARNING)
  runner = launch_spec.make_runner(can_restart=True)
  try:
    runner.run(launch_spec.serve)
  except BaseException:
    if not runner.has_reported:
      raise
    sys.exit(1)  # The failure is reported once, by the coordinator.
