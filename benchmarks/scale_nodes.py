"""Nodes of `scale.py`: coordinator, replay and learner, as in a run.

Each has its own process, as in `distributed`.
"""

import contextlib
import os
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import cloudpickle
import figures

from repertory.components.runtime import callers, network_interfaces
from repertory.launch.coordination import kinds
from repertory.launch.launchers import calls, node_process, rpc
from repertory.launch.platform import child_processes, ports
from repertory.launch.topologies import distributed

_NODES = (kinds.COORDINATOR.name, kinds.REPLAY.name, kinds.LEARNER.name)
_START_SECONDS = 120.0
_LOOK_SECONDS = 0.2


class Nodes:
  """The running nodes.

  Attributes:
    addresses: Address of each node, by name.
    token: Authentication token of the coordinator.
    coordinator: Client of the coordinator.
    replay_address: Address of the replay server.
  """

  def __init__(
    self,
    processes: Mapping[str, subprocess.Popen],
    addresses: Mapping[str, str],
    token: str,
  ):
    self._processes = processes
    self.addresses = addresses
    self.token = token
    self.coordinator = make_coordinator_client(addresses, 'launcher', token)
    self.replay_address = self._wait()

  def _wait(self) -> str:
    """Waits until all have started; returns the replay server's address."""
    for address in self.addresses.values():
      calls.wait_for_server(make_client(address, self.token))
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
      found = self.coordinator.address_of(kinds.REPLAY.name)
      states = dict(self.coordinator.observe().status.nodes)
      if found and states.get(kinds.LEARNER.name) == 'running':
        return found
      time.sleep(_LOOK_SECONDS)
    raise TimeoutError(f'Waited {_START_SECONDS:g} seconds for the nodes.')

  def busy_seconds(self) -> dict[str, float]:
    """Returns the processor time of each node, by name."""
    return {
      name: figures.processor_seconds(process.pid)
      for name, process in self._processes.items()
    }


@contextlib.contextmanager
def started(session: Any) -> Iterator[Nodes]:
  """Starts the nodes, and kills them at the end."""
  program = distributed.Distributed().program(session, 'scale')
  with contextlib.ExitStack() as stack:
    held = {name: stack.enter_context(ports.held()) for name in _NODES}
    addresses = {name: f'localhost:{port}' for name, port in held.items()}
    processes = {}
    for name in _NODES:
      peers = {one: addresses[one] for one in program.callees_of(name)}
      launch_spec = node_process.NodeLaunchSpec.of(
        program, name, peers, rpc.chosen()
      )
      log = os.path.join(session.log_directory, name)
      processes[name] = _start(launch_spec, held[name], log)
      stack.callback(_end, processes[name])
    nodes = Nodes(processes, addresses, program.token)
    nodes.coordinator.expect(program.names)
    yield nodes


def make_client(address: str, token: str) -> Any:
  """Returns an authenticated client of a node."""
  library = rpc.get(rpc.chosen())
  return library.make_client(address, _START_SECONDS, token)


def make_coordinator_client(
  addresses: Mapping[str, str], name: str, token: str
) -> Any:
  """Returns a client of the coordinator, for the node of that name."""
  client = make_client(addresses[kinds.COORDINATOR.name], token)
  return calls.AuthenticatedClient(client, callers.Caller(name, token=token))


def _start(
  launch_spec: node_process.NodeLaunchSpec, port: int, log: str
) -> subprocess.Popen:
  with open(log, 'ab') as file:
    return child_processes.start_node(
      launch_spec.plan.name,
      (port, network_interfaces.LOOPBACK, 0),
      cloudpickle.dumps(launch_spec),
      file,
      uuid.uuid4().hex,
    )


def _end(process: subprocess.Popen) -> None:
  process.kill()
  process.wait()
