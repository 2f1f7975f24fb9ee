"""Starts the process of a node on the host where it is placed, and watches it.

An actor of Ray runs it there. It computes nothing and carries no data, and
needs no TensorFlow.
"""

import contextlib
import ipaddress
import os
import pickle
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Sequence
from concurrent import futures
from typing import IO, NamedTuple, cast

import ray

from repertory.components import interfaces
from repertory.launch.host import child_processes, ports

# Of what a node prints, so much is handed over at once, and so much kept.
_READ_BYTES = 2**20
_MAX_BYTES = 2**24
# How soon one who waits for the end sees that another one does.
_TURN_SECONDS = 1.0


class Place(NamedTuple):
  """Where a node is.

  Attributes:
    address: The host's, in the cluster.
    interface: Over what others reach the node.
    senders: The addresses from which others may hear it.
    port: Where it serves, or None.
  """

  address: str
  interface: interfaces.Interface
  senders: Sequence[str]
  port: int | None


class Environment(NamedTuple):
  """Where a node's process finds what it needs.

  Attributes:
    paths: From where it imports, besides what Ray has copied.
    directory: Its working directory, if the host has it.
  """

  paths: Sequence[str]
  directory: str


class Supervisor:
  """Watches one node, in all the lives that it has on this host.

  Its methods are called in several threads, one of which waits for the end of
  the process.
  """

  def __init__(self, name: str):
    """Has started nothing yet.

    Args:
      name: The node's, which lists of processes show.
    """
    self._name = name
    self._held = contextlib.ExitStack()
    # It has no name, so nothing is left of it whatever becomes of this process.
    self._printed = tempfile.TemporaryFile('a+b')  # noqa: SIM115
    self._held.callback(self._printed.close)
    self._process: subprocess.Popen | None = None
    self._place: Place | None = None
    self._life: int | None = None
    self._turn = 0
    self._lock = threading.Lock()  # Of the place.
    self._run = uuid.uuid4().hex  # In all its processes.
    # The kernel ends a process when the thread that started it ends.
    self._starter = futures.ThreadPoolExecutor(1)

  def place(
    self, network: str | None, allows_public: bool, serves: bool
  ) -> Place:
    """Tells where it is; of a node that serves, keeps a port free for it.

    Args:
      network: Over what hosts reach each other: see `interfaces.of_network`; ''
        for that of this host's address in the cluster, None if there is no
        other host.
      allows_public: Whether that may be reached from the Internet.

    Raises:
      ValueError: If this host is not in the network, or that is public.
    """
    with self._lock:
      if self._place is None:
        address = ray.util.get_node_ip_address()
        interface = _choose_interface(address, network, allows_public)
        port = self._held.enter_context(ports.held()) if serves else None
        senders = interfaces.addresses_of(interface)
        self._place = Place(address, interface, senders, port)
      return self._place

  def start(self, cargo: bytes, environment: Environment, life: int) -> None:
    """Starts the node's process; that of an earlier life has ended.

    Args:
      cargo: A pickled `node_process.Cargo`.
      environment: Where it finds what it needs.
      life: How often the node was started before, in this run. That life is
        started once, however often this is called.
    """
    self._starter.submit(self._start, cargo, environment, life).result()

  def _start(self, cargo: bytes, environment: Environment, life: int) -> None:
    if self._life == life:
      return
    self._end_strays()
    if self._place is None:
      raise RuntimeError('It must be placed before it starts anything.')
    paths = list(environment.paths)
    if ray.get_runtime_context().runtime_env.working_dir():
      paths.insert(0, os.getcwd())  # Where the user's modules are copied to.
    exists = os.path.isdir(environment.directory)
    variables = {
      **os.environ,
      'PYTHONPATH': os.pathsep.join(paths),
      child_processes.LAUNCHER_VARIABLE: str(os.getpid()),
      child_processes.RUN_VARIABLE: self._run,
      child_processes.LIFE_VARIABLE: str(life),
    }
    self._process = subprocess.Popen(
      child_processes.node_command(self._name),
      env=variables,
      cwd=environment.directory if exists else None,
      stdin=subprocess.PIPE,
      stdout=self._printed,
      stderr=self._printed,
    )
    self._life = life
    pipe = cast(IO[bytes], self._process.stdin)
    # It may have ended before it has read all.
    with contextlib.suppress(BrokenPipeError), pipe:
      place = self._place.port, self._place.interface
      pipe.write(pickle.dumps(place))
      pipe.write(cargo)

  def wait_for_end(self, turn: int) -> int | None:
    """Waits until the process has ended, or this is asked for again.

    Args:
      turn: How often it was asked for before.

    Returns:
      The exit code; None if somebody else waits for it now.
    """
    self._turn = turn
    while self._turn == turn:
      with contextlib.suppress(subprocess.TimeoutExpired):
        return self._started.wait(_TURN_SECONDS)
    return None

  def kill(self) -> None:
    """Kills the process, and all that descend from it."""
    # The process id of one that has ended may be another's by now.
    if self._started.poll() is None:
      child_processes.kill_tree(self._started)

  def ask_for_stacks(self) -> None:
    """Lets the process print where its threads are."""
    if self._started.poll() is None:
      self._started.send_signal(child_processes.STACKS_SIGNAL)

  def read(self, start: int) -> tuple[bytes, int]:
    """Reads what the node printed.

    Args:
      start: Where to begin, in bytes.

    Returns:
      What is there, perhaps not all of it; and where to go on.
    """
    found = os.pread(self._printed.fileno(), _READ_BYTES, start)
    end = start + len(found)
    if not found and start > _MAX_BYTES:  # All of it was read.
      self._printed.truncate(0)
      end = 0
    return found, end

  def end(self) -> None:
    """Ends all that was started here."""
    if self._process is not None:
      self.kill()
    self._end_strays()
    self._starter.shutdown()
    self._held.close()

  @property
  def _started(self) -> subprocess.Popen:
    if self._process is None:
      raise RuntimeError('No process was started.')
    return self._process

  def _end_strays(self) -> None:
    """Kills what the node's last life has left behind."""
    child_processes.kill_strays(self._run, set())


def _choose_interface(
  address: str, network: str | None, allows_public: bool
) -> interfaces.Interface:
  """Returns over what others reach a node; see `Supervisor.place`."""
  if network is None:
    return interfaces.LOOPBACK
  if network:
    interface = interfaces.of_network(network)
  else:
    interface = interfaces.of_address(address)
  if ipaddress.ip_address(interface.host).is_global and not allows_public:
    raise ValueError(
      f'must be a private network, got {interface.host}, an address of the '
      'Internet, without allow_public_addresses.'
    )
  return interface
