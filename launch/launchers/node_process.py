"""Process that runs one node, as specified on its standard input.

Used by launchers that start threads or processes themselves.
"""

import contextlib
import dataclasses
import pickle
import sys
from collections.abc import Mapping
from typing import Any

from absl import flags, logging

from repertory.components.runtime import callers, network_interfaces
from repertory.launch.launchers import calls, node_runner, rpc
from repertory.launch.launchers import node_graph as node_graph_lib
from repertory.launch.platform import child_processes


@dataclasses.dataclass(frozen=True)
class NodeLaunchSpec:
  """Launch spec of a node in a thread or process.

  Attributes:
    plan: The node to run.
    peers: Addresses of the nodes that it may call, by name.
    token: Secret shared by all nodes of the launch.
    call_timeout_seconds: Time-out of calls between nodes.
    max_waiting_calls: Maximum concurrent calls to the node.
    rpc_name: Name of the RPC library, see `rpc`.
  """

  plan: node_graph_lib.PlannedNode
  peers: Mapping[str, str]
  token: str
  call_timeout_seconds: float
  max_waiting_calls: int
  rpc_name: str

  @classmethod
  def of(
    cls,
    program: node_graph_lib.NodeGraph,
    name: str,
    peers: Mapping[str, str],
    rpc_name: str,
  ) -> 'NodeLaunchSpec':
    return cls(
      program[name],
      peers,
      program.token,
      program.call_timeout_seconds,
      program.max_waiting_calls,
      rpc_name,
    )

  def make_client(self, address: str) -> Any:
    """Makes a client of another node."""
    return rpc.get(self.rpc_name).make_client(
      address, self.call_timeout_seconds, self.token
    )

  def make_runner(
    self,
    generation: int,
    can_restart: bool,
    interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
  ) -> node_runner.NodeRunner:
    peers = {name: self.make_client(at) for name, at in self.peers.items()}
    caller = callers.Caller(self.plan.name, generation, self.token)
    return node_runner.NodeRunner(
      self.plan,
      calls.signed(peers, caller),
      generation=generation,
      token=self.token,
      can_restart=can_restart,
      interface=interface,
      call_timeout_seconds=self.call_timeout_seconds,
    )

  def run(
    self,
    runner: node_runner.NodeRunner,
    port: int | None,
    interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
  ) -> None:
    """Runs the node to its end."""

    def serve(served):
      if port is None:
        return contextlib.nullcontext()
      return rpc.get(self.rpc_name).serving(
        port,
        {**served, 'shutdown': runner.shut_down},
        num_threads=self.max_waiting_calls,
        token=self.token,
        interface=interface,
      )

    runner.run(serve)


def run(
  launch_spec: NodeLaunchSpec,
  port: int | None,
  interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
) -> None:
  """Runs a node in this process, which can be killed and restarted."""
  child_processes.ignore_terminal_signals()
  logging.set_verbosity(logging.WARNING)
  runner = launch_spec.make_runner(
    child_processes.generation(), True, interface
  )
  launch_spec.run(runner, port, interface)


def main() -> None:
  """Runs the node specified on the standard input.

  Two pickles: a pair of port (or None) and network interface, and a
  `NodeLaunchSpec`.
  """
  child_processes.die_with_launcher()
  child_processes.ignore_terminal_signals()
  if not flags.FLAGS.is_parsed():
    flags.FLAGS.mark_as_parsed()
  port, interface = pickle.load(sys.stdin.buffer)
  launch_spec: NodeLaunchSpec = pickle.load(sys.stdin.buffer)
  child_processes.release_input()
  run(launch_spec, port, interface)
