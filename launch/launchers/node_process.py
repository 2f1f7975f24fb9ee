"""A process that runs one node, as it is told when it starts.

For launchers that start threads or processes themselves.
"""

import dataclasses
import pickle
import sys
from collections.abc import Mapping

from absl import flags, logging

from repertory.components import callers, interfaces
from repertory.launch.host import child_processes
from repertory.launch.launchers import calls, carriers, hosting
from repertory.launch.launchers import program as program_lib


@dataclasses.dataclass(frozen=True)
class Cargo:
  """What a thread or process is given.

  Attributes:
    plan: The node that it runs.
    peers: Addresses of the nodes that it may call, by name.
    token: What all nodes of the launch know.
    call_timeout_seconds: How long a call between nodes may take.
    max_waiting_calls: How many may wait at it.
    carrier: What carries them, see `carriers`.
  """

  plan: program_lib.PlannedNode
  peers: Mapping[str, str]
  token: str
  call_timeout_seconds: float
  max_waiting_calls: int
  carrier: str

  @classmethod
  def of(
    cls,
    program: program_lib.Program,
    name: str,
    peers: Mapping[str, str],
    carrier: str,
  ) -> 'Cargo':
    """Returns what a node of a program is given.

    Args:
      peers: Addresses of the nodes that it calls, by name.
    """
    return cls(
      program[name],
      peers,
      program.token,
      program.call_timeout_seconds,
      program.max_waiting_calls,
      carrier,
    )

  def make_host(
    self,
    life: int,
    can_restart: bool,
    interface: interfaces.Interface = interfaces.LOOPBACK,
  ) -> hosting.Host:
    """Returns what runs the node; see `hosting.Host`."""
    seconds, carrier = self.call_timeout_seconds, carriers.get(self.carrier)
    peers = {
      name: carrier.make_client(address, seconds, self.token)
      for name, address in self.peers.items()
    }
    caller = callers.Caller(self.plan.name, life, self.token)
    return hosting.Host(
      self.plan,
      calls.signed(peers, caller),
      life=life,
      token=self.token,
      can_restart=can_restart,
      interface=interface,
      call_timeout_seconds=seconds,
    )

  def run(
    self,
    host: hosting.Host,
    port: int | None,
    interface: interfaces.Interface = interfaces.LOOPBACK,
  ) -> None:
    """Runs the node to its end.

    Args:
      port: Where it serves, or None.
      interface: Over which.
    """
    carrier, server = carriers.get(self.carrier), None
    if port is not None:
      server = carrier.make_server(port, self.max_waiting_calls, self.token)
    host.run(
      lambda served: carrier.serving(server, served, host.shut_down, interface)
    )


def main() -> None:
  """Runs the node that stands on the standard input.

  That has, pickled, the port where it serves, or None, and the interface over
  which; and then its `Cargo`.
  """
  child_processes.die_with_launcher()
  child_processes.heed_launcher_alone()
  if not flags.FLAGS.is_parsed():
    flags.FLAGS.mark_as_parsed()
  logging.set_verbosity(logging.WARNING)
  port, interface = pickle.load(sys.stdin.buffer)
  cargo: Cargo = pickle.load(sys.stdin.buffer)
  child_processes.let_go_of_input()
  host = cargo.make_host(child_processes.life(), True, interface)
  cargo.run(host, port, interface)
