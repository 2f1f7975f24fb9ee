"""A process that runs one node, as it is told when it starts.

For launchers that start processes themselves.
"""

import dataclasses
import pickle
import sys
from collections.abc import Mapping

from absl import flags, logging

from repertory.components import callers
from repertory.launch.host import child_processes
from repertory.launch.launchers import calls, courier_servers, hosting
from repertory.launch.launchers import program as program_lib


@dataclasses.dataclass(frozen=True)
class Cargo:
  """What a process is sent.

  Attributes:
    plan: The node that it runs.
    peers: Addresses of the nodes that it may call, by name.
    token: What all nodes of the launch know.
    call_timeout_seconds: How long a call between nodes may take.
    max_waiting_calls: How many may wait at it.
  """

  plan: program_lib.PlannedNode
  peers: Mapping[str, str]
  token: str
  call_timeout_seconds: float
  max_waiting_calls: int


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
  seconds = cargo.call_timeout_seconds
  caller = callers.Caller(cargo.plan.name, child_processes.life(), cargo.token)
  peers = {
    name: courier_servers.make_client(address, seconds)
    for name, address in cargo.peers.items()
  }
  host = hosting.Host(
    cargo.plan,
    calls.signed(peers, caller),
    life=caller.life,
    token=caller.token,
    can_restart=True,
    interface=interface,
    call_timeout_seconds=seconds,
  )

  server = None
  if port is not None:
    server = courier_servers.make_server(port, cargo.max_waiting_calls)
  host.run(
    lambda served: courier_servers.serving(
      server, served, host.shut_down, interface
    )
  )
