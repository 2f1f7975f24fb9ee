"""Supervisor of a node process on its host, as a Ray actor.

It handles no data of the run and needs no TensorFlow.
"""

import contextlib
import fcntl
import ipaddress
import os
import tempfile
import threading
from collections.abc import Sequence
from typing import NamedTuple

import ray

from repertory.components.network import network_interfaces
from repertory.launch.platform import child_processes, ports, zygote

# Maximum bytes of a node's output per read, and kept.
_MAX_BYTES = 2**24


class NodeAddress(NamedTuple):
  """Addresses of a node's host, in the cluster, and of its server."""

  address: str
  interface: network_interfaces.Interface
  port: int | None


class Supervisor:
  """Supervises one process of a node; methods are called concurrently."""

  def __init__(self, name: str, run: str):
    """Takes the name of the node, and the id of its run."""
    self._name = name
    self._run = run
    # Reserved ports, until this process ends.
    self._held = contextlib.ExitStack()
    # An unnamed file, which is deleted even if this process is killed.
    self._printed = tempfile.TemporaryFile()  # noqa: SIM115
    # The process shares its position, which `read` may put behind the end.
    fcntl.fcntl(self._printed, fcntl.F_SETFL, os.O_APPEND)
    self._zygote: zygote.Zygote | None = None
    self._process: zygote.Process | None = None
    self._lock = threading.Lock()  # Guards the start of the process.

  def place(
    self, network: str | None, allows_public: bool, serves: bool
  ) -> NodeAddress:
    """Returns the node's address; reserves a port if the node serves.

    The network is as in `network_interfaces.of_network`, '' for that of this
    host's address in the cluster, or None for a single host.
    """
    address = ray.util.get_node_ip_address()
    interface = _choose_interface(address, network, allows_public)
    port = self._held.enter_context(ports.held()) if serves else None
    return NodeAddress(address, interface, port)

  def run(self, task: bytes, paths: Sequence[str], directory: str) -> int:
    """Runs the process to its end; returns its exit code.

    A repeated call waits for the same process. `paths` are import paths besides
    that of modules copied by Ray; `directory` is the working directory, if it
    exists on this host.
    """
    with self._lock:
      if self._zygote is None or self._process is None:
        if ray.get_runtime_context().runtime_env.working_dir():
          paths = [os.getcwd(), *paths]  # Folder of the user's copied modules.
        self._zygote = zygote.Zygote(self._run, is_shared=True)
        self._process = self._zygote.start(
          self._name,
          task,
          self._printed,
          paths,
          directory if os.path.isdir(directory) else None,
        )
    code = self._process.wait()
    self._zygote.kill_orphans()
    self._zygote.close()
    return code

  def kill(self) -> None:
    """Kills the process and its descendants."""
    if self._process is not None:
      child_processes.kill_tree(self._process)

  def ask_for_stacks(self) -> None:
    """Makes the process print the stacks of its threads."""
    if self._process is not None:
      self._process.send_signal(child_processes.STACKS_SIGNAL)

  def read(self, start: int) -> tuple[bytes, int]:
    """Returns a part of the node's output, and the next position."""
    found = os.pread(self._printed.fileno(), _MAX_BYTES, start)
    end = start + len(found)
    if not found and start > _MAX_BYTES:  # All output has been read.
      self._printed.truncate(0)
      end = 0
    return found, end


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
