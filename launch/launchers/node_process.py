"""Process that runs one node, as specified on its standard input.

Used by launchers that start threads or processes themselves.
"""

import contextlib
import dataclasses
import pickle
import sys
from collections.abc import Mapping

from absl import flags, logging

from repertory.components.runtime import callers, network_interfaces
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

  @property
  def address(self) -> str | None:
    """Address of its server; None if it does not serve."""
    return None if self.port is None else self.interface.address(self.port)

  def make_runner(
    self, generation: int, can_restart: bool
  ) -> node_runner.NodeRunner:
    """Makes the runner of a generation of the node, with its clients."""
    peers = {name: self.rpc.make_client(at) for name, at in self.peers.items()}
    if (name := kinds.COORDINATOR.name) in peers:
      caller = callers.Caller(self.plan.name, generation, self.rpc.token)
      peers[name] = calls.AuthenticatedClient(peers[name], caller)
    return node_runner.NodeRunner(
      self.plan,
      peers,
      call_timeout_seconds=self.rpc.timeout_seconds,
      generation=generation,
      token=self.rpc.token,
      can_restart=can_restart,
      interface=self.interface,
    )

  def run(self, runner: node_runner.NodeRunner) -> None:
    """Runs the node to its end."""

    def serve(served):
      if self.port is None:
        return contextlib.nullcontext()
      served = {**served, 'shutdown': runner.shut_down}
      return self.rpc.serving(self.port, served, self.interface)

    runner.run(serve)


def run(launch_spec: NodeLaunchSpec) -> None:
  """Runs a node in this process, which can be killed and restarted."""
  child_processes.die_with_launcher()
  child_processes.ignore_terminal_signals()
  logging.set_verbosity(logging.WARNING)
  launch_spec.run(launch_spec.make_runner(child_processes.generation(), True))


def main() -> None:
  """Runs the node of the pickled `NodeLaunchSpec` on the standard input."""
  child_processes.die_with_launcher()  # Imports of the spec take time.
  child_processes.ignore_terminal_signals()
  if not flags.FLAGS.is_parsed():
    flags.FLAGS.mark_as_parsed()
  launch_spec = pickle.load(sys.stdin.buffer)
  child_processes.release_input()
  run(launch_spec)
