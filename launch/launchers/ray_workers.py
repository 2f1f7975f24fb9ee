"""Workers in processes on a Ray cluster, each with a supervisor."""

import contextlib
import dataclasses
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import ray
from ray import exceptions as ray_errors

from repertory.components.config import settings
from repertory.launch.coordination import kinds
from repertory.launch.experiments import failures
from repertory.launch.launchers import (
  launcher,
  process_workers,
  ray_cluster,
  ray_placement,
  ray_printed,
  ray_supervisor,
  rpc,
)
from repertory.launch.launchers import node_graph as node_graph_lib
from repertory.launch.platform import printed

# A supervisor replies at once if its host can be reached.
_ANSWER_SECONDS = 10.0
_START_SECONDS = 60.0
_END_SECONDS = 10.0
_POLL_SECONDS = 0.05


@contextlib.contextmanager
def launch(
  program: node_graph_lib.NodeGraph,
  log_directory: str,
  *,
  address: str,
  resources: Mapping[str, Mapping[str, float]],
  network: str,
  allows_public: bool,
) -> Iterator[launcher.Workers]:
  """Launches a node graph; see `launcher.Launcher.launch`."""
  printed.set_aside(log_directory)
  with ray_cluster.connected(address) as heartbeat:
    placement = ray_placement.Placement(
      program, resources, network, allows_public
    )
    workers = RayWorkers(program, placement, heartbeat, log_directory)
    try:
      for name in program.names:
        workers.place(name)
      yield workers
    finally:
      workers.end()


@dataclasses.dataclass
class _Node:
  """State of a node in its current generation.

  Calls to its supervisor are asynchronous and polled. There is always one that
  waits for the end of the process; if it fails because the supervisor is lost,
  so is the node.

  Attributes:
    supervisor: Ray's handle of the supervisor.
    placing: Pending call that returns the node's address.
    since: Time of the call for placing or starting.
    generation: Generation: number of earlier starts of the node.
    place: Address of the node; None until it is placed.
    starting: Pending call that starts its process.
    ending: Pending call that waits for the end of the process.
    code: Exit code; None until it has ended.
    loss: Error message, if it ended without an exit code.
    is_lost: Whether a restart on another host may help.
    is_bad_input: Whether the cause is invalid user input.
    wanted: Address of the preferred host; '' for none.
  """

  supervisor: Any
  placing: Any
  since: float
  generation: int = 0
  place: ray_supervisor.NodeAddress | None = None
  starting: Any = None
  ending: Any = None
  code: Any = None
  loss: str = ''
  is_lost: bool = True
  is_bad_input: bool = False
  wanted: str = ''


class RayWorkers(process_workers.ProcessWorkers):
  """Workers in processes started by supervisors on the hosts of a cluster."""

  def __init__(
    self,
    program: node_graph_lib.NodeGraph,
    placement: ray_placement.Placement,
    heartbeat: ray_cluster.Heartbeat,
    log_directory: str,
  ):
    super().__init__(program, {}, log_directory)
    self._placement = placement
    self._heartbeat = heartbeat
    self._nodes: dict[str, _Node] = {}
    self._hosts = placement.hosts  # As of the last query.
    # Living hosts where nodes were lost or did not start.
    self._avoided: set[str] = set()
    self._printed = ray_printed.Printed(self._paths)

  def is_placed(self, name: str) -> bool:
    return self._address_of(name) is not None

  def client(self, name: str) -> Any:
    address = self._address_of(name)
    if address is None:
      raise RuntimeError(f'{name} must be placed before it is called.')
    library = rpc.get(self._placement.rpc_name)
    return library.make_client(
      address, self.program.call_timeout_seconds, self.program.token
    )

  def is_alive(self, name: str) -> bool:
    node = self._nodes[name]
    if node.code is None and not node.loss:
      self._advance(name, node)
    return node.code is None and not node.loss

  def failure_of(self, name: str) -> failures.Failure:
    node = self._nodes[name]
    if node.loss:
      return failures.Failure(name, node.loss, node.is_bad_input, node.is_lost)
    return process_workers.describe_end(name, node.code or 0)

  def imminent_failure(self) -> failures.Failure | None:
    if not self._heartbeat.is_silent:
      return None
    return failures.Failure(
      kinds.COORDINATOR.name,
      f'The head of the Ray cluster has not replied for '
      f'{ray_cluster.SILENCE_SECONDS:g} seconds. Without it, Ray ends all '
      'processes soon. Restart the head; the same command resumes from the '
      'last checkpoint.',
    )

  def waiting(self) -> str:
    names = [n for n, node in self._nodes.items() if node.place is None]
    if not names:
      return ''
    return f'waiting for resources for {", ".join(names)}'

  def kill(self, name: str) -> str:
    owner = self.program.owner_of(name)
    self.kill_all([owner])
    return owner

  def kill_all(self, names: Collection[str]) -> None:
    alive = [name for name in names if self.is_alive(name)]
    seconds = launcher.HURRIED_SECONDS if self.is_forced else _ANSWER_SECONDS
    nodes = [self._nodes[name] for name in alive]
    _wait_for_all(
      [n.supervisor.kill.remote() for n in nodes if n.ending is not None],
      seconds,
    )
    deadline = time.monotonic() + seconds
    for name, node in zip(alive, nodes):
      while node.ending is not None and self.is_alive(name):
        if time.monotonic() > deadline:
          break
        time.sleep(_POLL_SECONDS)
      if self.is_alive(name):
        self._kill_supervisor(node)
        self._lose(node, f'{self._describe_place(node)} did not reply.')

  def restart(self, name: str) -> None:
    self._printed.fetch(name)
    node = self._nodes[name]
    generation = node.generation + 1
    if node.loss:
      self._kill_supervisor(node)
      if not self._heartbeat.is_late:  # Otherwise the query would hang.
        self._hosts = ray_cluster.living_hosts()
      self.place(name)
      self._nodes[name].generation = generation
      return
    node.starting = node.ending = node.code = None
    node.generation, node.since = generation, time.monotonic()
    self._advance(name, node)

  def end(self) -> None:
    for node in self._nodes.values():
      if node.starting is None:
        self._kill_supervisor(node)
        node.loss = node.loss or 'It was ended before it started.'
    super().end()
    self._printed.close()
    supervisors = [node.supervisor for node in self._nodes.values()]
    _wait_for_all([one.end.remote() for one in supervisors], _END_SECONDS)
    for node in self._nodes.values():
      self._kill_supervisor(node)

  def _choose_host(self) -> ray_cluster.ClusterHost | None:
    """Returns the host with the fewest nodes per CPU; None for any.

    Excludes hosts where nodes were lost. Ray's own spreading may place all
    nodes without resources on one host.
    """
    taken = [
      node.place.address if node.place else node.wanted
      for node in self._nodes.values()
    ]

    def load(host: ray_cluster.ClusterHost) -> float:
      num_cpus = max(host.resources.get('CPU', 0), 1)
      return (taken.count(host.address) + 1) / num_cpus

    fit = [host for host in self._hosts if host.address not in self._avoided]
    return min(fit, key=load, default=None)

  def place(self, name: str) -> None:
    """Starts placing a new supervisor of a node."""
    host = self._placement.own_host_of(name) or self._choose_host()
    supervisor = self._placement.make_supervisor(name, host and host.name)
    self._nodes[name] = _Node(
      supervisor, None, time.monotonic(), wanted=host.address if host else ''
    )
    self._ask_for_place(name, self._nodes[name])
    self._printed.begin(name, supervisor)

  def _ask_for_place(self, name: str, node: _Node) -> None:
    node.placing = node.supervisor.place.remote(
      self._placement.network,
      self._placement.allows_public,
      self.program[name].kind.serves,
    )

  def _advance(self, name: str, node: _Node) -> None:
    """Advances a node's state by the results of its pending calls."""
    try:
      if node.place is None and _is_answered(node.placing):
        node.place, node.since = ray.get(node.placing), time.monotonic()
      if node.place is not None and node.starting is None:
        node.starting = self._start(name, node)
        node.since = time.monotonic()
      if node.ending is None and _is_answered(node.starting):
        ray.get(node.starting)
        node.ending = node.supervisor.wait_for_end.remote()
      if _is_answered(node.ending):
        node.code = ray.get(cast(Any, node.ending))
        if node.code is None:
          node.ending = node.supervisor.wait_for_end.remote()
    except ray_errors.ActorUnavailableError:  # It may recover.
      self._ask_again(name, node)
    except (ray_errors.RayTaskError, ray_errors.RuntimeEnvSetupError) as error:
      cause = getattr(error, 'cause', error)
      node.is_lost, node.is_bad_input = False, isinstance(cause, ValueError)
      setting = 'bind_interface ' if node.is_bad_input else ''
      self._avoid_host_of(node)
      node.loss = f'It could not be started: {setting}{settings.text_of(cause)}'
    except ray_errors.RayError as error:
      message = ' '.join(settings.text_of(error).split())
      loss = f'{self._describe_place(node)} was lost.'
      self._lose(
        node,
        f'Ray says: {message}\n{loss}',
        ray_cluster.address_in_error(message),
      )
    else:
      self._check_time(name, node)

  def _ask_again(self, name: str, node: _Node) -> None:
    """Repeats a pending call that could not be delivered."""
    if node.place is None:
      self._ask_for_place(name, node)
    elif node.ending is None:
      node.starting = None
    else:
      node.ending = node.supervisor.wait_for_end.remote()

  def _lose(self, node: _Node, loss: str, address: str = '') -> None:
    """Records a loss, after which the node's host is avoided."""
    node.loss = loss
    self._avoid_host_of(node, address)

  def _avoid_host_of(self, node: _Node, address: str = '') -> None:
    # An unplaced node may not be on its preferred host.
    address = node.place.address if node.place else address or node.wanted
    if address:
      self._avoided.add(address)

  def _check_time(self, name: str, node: _Node) -> None:
    """Marks a node as lost if it is not placed or started in time."""
    seconds = time.monotonic() - node.since
    if node.place is None and seconds > self._placement.seconds:
      node.loss = self._placement.describe_want(name)
    elif node.starting and not node.ending and seconds > _START_SECONDS:
      self._lose(
        node,
        f'{self._describe_place(node)} did not start it within '
        f'{_START_SECONDS:g} s.',
      )

  def _start(self, name: str, node: _Node) -> Any:
    """Starts a node's current generation if all its callees are placed."""
    peers = {}
    for callee in self.program.callees_of(name):
      peers[callee] = self._address_of(callee)
      if peers[callee] is None:
        return None
    launch_spec = self._placement.load(name, peers)
    environment = self._placement.environment
    return node.supervisor.start.remote(
      launch_spec, environment, node.generation
    )

  def _address_of(self, name: str) -> str | None:
    self.is_alive(name)  # Updates its state.
    place = self._nodes[name].place
    if place is None or place.port is None:
      return None
    return place.interface.address(place.port)

  def _kill_supervisor(self, node: _Node) -> None:
    """Kills a supervisor; the kernel then kills its process."""
    if not self._heartbeat.is_silent:  # Without the head, this hangs.
      with contextlib.suppress(ray_errors.RayError):
        ray.kill(node.supervisor)

  def _describe_place(self, node: _Node) -> str:
    if node.place is None:
      return 'Its host'
    return f'Its host, {node.place.address}, or its supervisor there,'

  def _fetch(self, name: str) -> None:
    self._printed.fetch(name)

  def _ask_for_stacks(self, name: str) -> None:
    self._nodes[name].supervisor.ask_for_stacks.remote()


def _wait_for_all(calls: Sequence[Any], seconds: float) -> None:
  if calls:
    ray.wait(list(calls), num_returns=len(calls), timeout=seconds)


def _is_answered(call: Any) -> bool:
  return call is not None and bool(ray.wait([call], timeout=0)[0])
