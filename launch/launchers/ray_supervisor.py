"""Supervisor of a node process on its host, as a Ray actor.

It handles no data of the run and needs no TensorFlow.
"""

import contextlib
import ipaddress
import os
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Sequence
from concurrent import futures
from typing import Any, NamedTuple

import ray

from repertory.components.runtime import network_interfaces
from repertory.launch.platform import child_processes, ports

# Maximum bytes of a node's output per read, and kept.
_MAX_BYTES = 2**24
# Duration of a wait for the end of the process, which is then repeated.
_WAIT_SECONDS = 5.0


class NodeAddress(NamedTuple):
  """Addresses of a node's host, in the cluster, and of its server."""

  address: str
  interface: network_interfaces.Interface
  port: int | None


class Supervisor:
  """Supervises one node over all its generations on this host.

  Methods are called concurrently; one call waits for the end of the process.
  """

  def __init__(self, name: str):
    self._name = name
    self._held = contextlib.ExitStack()
    # An unnamed file, which is deleted even if this process is killed.
    self._printed = tempfile.TemporaryFile('a+b')  # noqa: SIM115
    self._held.callback(self._printed.close)
    self._process: Any = None  # Set by `start`.
    self._place: NodeAddress | None = None
    self._generation: int | None = None
    self._lock = threading.Lock()  # Guards the place.
    self._run = uuid.uuid4().hex  # Identifies its processes.
    # The kernel kills a process when the thread that started it ends.
    self._starter = futures.ThreadPoolExecutor(1)

  def place(
    self, network: str | None, allows_public: bool, serves: bool
  ) -> NodeAddress:
    """Returns the node's address; reserves a port if the node serves.

    The network is as in `network_interfaces.of_network`, '' for that of this
    host's address in the cluster, or None for a single host.
    """
    with self._lock:
      if self._place is None:
        address = ray.util.get_node_ip_address()
        interface = _choose_interface(address, network, allows_public)
        port = self._held.enter_context(ports.held()) if serves else None
        self._place = NodeAddress(address, interface, port)
      return self._place

  def start(
    self,
    launch_spec: bytes,
    paths: Sequence[str],
    directory: str,
    generation: int,
  ) -> None:
    """Starts a generation of the node's process, even if called repeatedly.

    `paths` are import paths besides that of modules copied by Ray; `directory`
    is the working directory, if it exists on this host.
    """
    self._starter.submit(
      self._start, launch_spec, paths, directory, generation
    ).result()

  def _start(self, launch_spec, paths, directory, generation) -> None:
    if self._generation == generation:
      return
    child_processes.kill_orphans(self._run, set())
    if ray.get_runtime_context().runtime_env.working_dir():
      paths = [os.getcwd(), *paths]  # Folder of the user's copied modules.
    self._process = child_processes.start(
      child_processes.node_command(self._name),
      child_processes.variables(self._run, paths),
      generation,
      self._printed,
      launch_spec,
      directory if os.path.isdir(directory) else None,
    )
    self._generation = generation

  def wait_for_end(self) -> int | None:
    """Waits some seconds for the process to end; returns its exit code."""
    with contextlib.suppress(subprocess.TimeoutExpired):
      return self._process.wait(_WAIT_SECONDS)
    return None

  def kill(self) -> None:
    """Kills the process and its descendants."""
    child_processes.kill_tree(self._process)

  def ask_for_stacks(self) -> None:
    """Makes the process print the stacks of its threads."""
    if self._process.poll() is None:
      self._process.send_signal(child_processes.STACKS_SIGNAL)

  def read(self, start: int) -> tuple[bytes, int]:
    """Returns a part of the node's output, and the next position."""
    found = os.pread(self._printed.fileno(), _MAX_BYTES, start)
    end = start + len(found)
    if not found and start > _MAX_BYTES:  # All output has been read.
      self._printed.truncate(0)
      end = 0
    return found, end

  def end(self) -> None:
    """Ends all processes and releases the port."""
    if self._process is not None:
      self.kill()
    child_processes.kill_orphans(self._run, set())
    self._starter.shutdown()
    self._held.close()


def _choose_interface(
  address: str, network: str | None, allows_public: bool
) -> network_interfaces.Interface:
  """Returns the network interface of a server; see `Supervisor.place`."""
  if network is None:
    return network_interfaces.LOOPBACK
  if network:
    try:
      interface = network_interfaces.of_network(network)
    except ValueError as error:
      raise ValueError(f'bind_interface {error}') from error
  else:
    interface = network_interfaces.of_address(address)
  if ipaddress.ip_address(interface.host).is_global and not allows_public:
    raise ValueError(
      'allow_public_addresses must be set for hosts with public addresses, got '
      f'{interface.host}. Anyone who can reach them can read and change '
      'everything, and run code. Prefer a private network, see bind_interface.'
    )
  return interface
