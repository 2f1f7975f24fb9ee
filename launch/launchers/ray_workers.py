"""Workers in processes on a Ray cluster, each with a supervisor."""

import collections
import contextlib
import dataclasses
import os
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, cast

import ray
from ray import exceptions as ray_errors
from ray.util import scheduling_strategies

from repertory.components.config.settings import SettingError, text_of
from repertory.launch import failures
from repertory.launch.coordination import kinds
from repertory.launch.launchers import (
  launcher,
  node_process,
  ray_cluster,
  ray_launcher,
  ray_supervisor,
)
from repertory.launch.platform import child_processes, printed

# A supervisor replies at once if its host can be reached.
_ANSWER_SECONDS = 10.0
_POLL_SECONDS = 0.05
# Time-out of placing a node.
_PLACE_SECONDS = 120.0
# Period of fetching the output of nodes.
_READ_SECONDS = 1.0

# Concurrent calls of a supervisor: `run`, perhaps repeated, and others, which
# may hang in disk I/O.
_CALLS_AT_ONCE = 8

# Otherwise Ray would hide all GPUs from nodes that request none.
_GPUS_STAY = {'RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO': '0'}

# Names of Ray options for built-in resources.
_OPTIONS = {'CPU': 'num_cpus', 'GPU': 'num_gpus', 'memory': 'memory'}


@contextlib.contextmanager
def launch(
  program: launcher.NodeGraph,
  log_directory: str,
  settings: ray_launcher.RayLauncher,
) -> Iterator[launcher.Workers]:
  """Launches a node graph; see `launcher.Launcher.launch`."""
  printed.set_aside(log_directory)
  with ray_cluster.connected(settings.ray_address) as silence:
    workers = RayWorkers(program, silence, log_directory, settings)
    try:
      for name in program.names:
        workers.place(name)
      yield workers
    finally:
      workers.end()


@dataclasses.dataclass
class _Node:
  """State of a node in its current generation, updated by its thread."""

  supervisor: Any  # Ray's handle.
  address: str  # Of its host; until it is placed, of the preferred one.
  path: str  # Of its output.
  generation: int
  place: ray_supervisor.NodeAddress | None = None
  is_started: bool = False
  failure: failures.Failure | None = None  # How it ended.
  thread: threading.Thread | None = None
  position: int = 0  # Of its output, up to which it has been fetched.
  fetching: Any = dataclasses.field(default_factory=threading.Lock)


class RayWorkers(launcher.Workers):
  """Workers in processes started by supervisors on the hosts of a cluster.

  Nodes that save checkpoints, or need a fixed address, are pinned to the
  launching host. Others may be on any host with free resources. A thread per
  node waits for its supervisor, and fetches its output.
  """

  def __init__(
    self,
    program: launcher.NodeGraph,
    silence: Callable[[], float],
    log_directory: str,
    settings: ray_launcher.RayLauncher,
  ):
    super().__init__(program, {}, log_directory)
    self._silence = silence  # Seconds since the last reply of the head.
    self._resources = settings.resources
    self._allows_public = settings.allow_public_addresses
    here = ray.get_runtime_context().get_node_id()
    self._hosts = ray_cluster.living_hosts()  # As of the last query.
    (self._here,) = [host for host in self._hosts if host['NodeID'] == here]
    self._is_alone = len(self._hosts) == 1
    self._network = None if self._is_alone else settings.bind_interface
    found = {kinds.kind_of(name).name for name in program.names}
    for kind in self._resources:
      if kind not in found:
        raise SettingError(
          'node_resources',
          f'must be of nodes with their own process, '
          f'{", ".join(sorted(found))}; got {kind!r}.',
        )
    self._run_id = uuid.uuid4().hex
    self._nodes: dict[str, _Node] = {}
    # Living hosts where nodes were lost or did not start.
    self._avoided: set[str] = set()

  def address_of(self, name: str) -> str | None:
    place = self._nodes[name].place
    if place is None or place.port is None:
      return None
    return place.interface.address(place.port)

  def is_alive(self, name: str) -> bool:
    # Without a node, the launch has failed before.
    return name in self._nodes and self._nodes[name].failure is None

  def failure_of(self, name: str) -> failures.Failure:
    return cast(failures.Failure, self._nodes[name].failure)

  def imminent_failure(self) -> failures.Failure | None:
    if self._silence() < ray_cluster.SILENCE_SECONDS:
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
    alive = {name: self._nodes[name] for name in names if self.is_alive(name)}
    started = [name for name, node in alive.items() if node.is_started]
    for name in started:
      alive[name].supervisor.kill.remote()
    deadline = time.monotonic() + (
      launcher.HURRIED_SECONDS if self.is_forced else _ANSWER_SECONDS
    )
    while any(map(self.is_alive, started)) and time.monotonic() < deadline:
      time.sleep(_POLL_SECONDS)
    for name, node in alive.items():
      if self.is_alive(name):
        self._kill_supervisor(node)
        node.failure = self._lost(name, node, 'did not reply.')

  def restart(self, name: str) -> None:
    self._fetch(name)
    node = self._nodes[name]
    self._kill_supervisor(node)
    if self._silence() < ray_cluster.LATE_SECONDS:  # Else it would hang.
      self._hosts = ray_cluster.living_hosts()
    self.place(name, node.generation + 1)

  def end(self) -> None:
    for name, node in self._nodes.items():
      if not node.is_started:
        node.failure = node.failure or failures.of_exit(name, 0)
    super().end()
    deadline = time.monotonic() + _ANSWER_SECONDS
    for node in self._nodes.values():
      cast(Any, node.thread).join(max(0, deadline - time.monotonic()))
      self._kill_supervisor(node)

  def _choose_host(self) -> Mapping[str, Any] | None:
    """Returns the host with the fewest nodes per CPU; None for any.

    Excludes hosts where nodes were lost. Ray's own spreading may place all
    nodes without resources on one host.
    """
    taken = collections.Counter(n.address for n in self._nodes.values())

    def load(host: Mapping[str, Any]) -> float:
      num_nodes = taken[host['NodeManagerAddress']] + 1
      return num_nodes / max(host['Resources'].get('CPU', 0), 1)

    fit = [
      host
      for host in self._hosts
      if host['NodeManagerAddress'] not in self._avoided
    ]
    return min(fit, key=load, default=None)

  def place(self, name: str, generation: int = 0) -> None:
    """Starts placing a new supervisor of a node, preferably on a host."""
    is_pinned = self._is_alone or not kinds.kind_of(name).is_replaceable
    host = self._here if is_pinned else self._choose_host()
    asked = self._resources.get(kinds.kind_of(name).name, {})
    strategy: Any = 'SPREAD'
    if host is not None:
      # Without requested resources, the preference is strict: otherwise Ray
      # would choose other hosts, even faulty ones, if the host is slow to
      # reply.
      strategy = scheduling_strategies.NodeAffinitySchedulingStrategy(
        host['NodeID'], soft=bool(asked) and not is_pinned
      )
    options = {_OPTIONS[k]: n for k, n in asked.items() if k in _OPTIONS}
    own = {k: n for k, n in asked.items() if k not in _OPTIONS}
    supervisor = ray.remote(ray_supervisor.Supervisor)
    try:
      supervisor = supervisor.options(
        **{'num_cpus': 0, **options},
        resources=own,
        max_concurrency=_CALLS_AT_ONCE,
        scheduling_strategy=strategy,
        runtime_env={'env_vars': _GPUS_STAY},
      )
    except ValueError as error:
      raise SettingError(
        'node_resources',
        f'must be resources that Ray accepts, got {asked}: {text_of(error)}',
      ) from error
    address = host['NodeManagerAddress'] if host else ''
    node = self._nodes[name] = _Node(
      supervisor.remote(name, self._run_id),
      address,
      self._paths[name],
      generation,
    )
    node.thread = threading.Thread(
      target=self._supervise, args=[name, node], daemon=True
    )
    node.thread.start()

  def _supervise(self, name: str, node: _Node) -> None:
    """Places a node and runs its process; records how it ended."""
    try:
      failure = self._run(name, node)
    except (ray_errors.RayTaskError, ray_errors.RuntimeEnvSetupError) as error:
      cause = getattr(error, 'cause', error)
      self._avoided.add(node.address)
      failure = failures.Failure(
        name,
        f'It could not be started: {text_of(cause)}',
        is_bad_input=isinstance(cause, ValueError),
      )
    except ray_errors.RayError as error:
      lost = self._lost(name, node, 'was lost.')
      message = ' '.join(text_of(error).split())
      cause = f'Ray says: {message}\n{lost.cause}'
      failure = dataclasses.replace(lost, cause=cause)
    except Exception as error:
      failure = failures.of_exception(name, error)
    node.failure = node.failure or failure
    self._read(node)

  def _run(self, name: str, node: _Node) -> failures.Failure | None:
    """Returns how the process ended; ignored if it has been killed."""
    plan, kind = self.program[name], self.program[name].kind
    node.place = self._result(
      node,
      lambda: node.supervisor.place.remote(
        self._network, self._allows_public, kind.serves
      ),
      _PLACE_SECONDS,
    )
    if node.failure is not None:
      return None
    if node.place is None:
      asked = self._resources.get(kind.name)
      what = f'{_in_words(asked)} and ' if asked else ''
      cause = (
        f'Waited {_PLACE_SECONDS:g} seconds for {what}a host for it. The '
        f'cluster has {_in_words(ray.cluster_resources())}; free are '
        f'{_in_words(ray.available_resources())}.'
      )
      return failures.Failure(name, cause, is_lost=True)
    node.address = node.place.address
    peers: dict[str, str] = {}
    for callee in self.program.callees_of(name):
      while (address := self.address_of(callee)) is None:
        if node.failure is not None:
          return None
        time.sleep(_POLL_SECONDS)
      peers[callee] = address
    _, interface, port = node.place
    launch_spec = node_process.NodeLaunchSpec(
      plan, peers, self.program.rpc, port, interface, node.generation
    )
    arguments = launch_spec.task, child_processes.import_paths(), os.getcwd()
    node.is_started = True
    code = self._result(node, lambda: node.supervisor.run.remote(*arguments))
    return failures.of_exit(name, code or 0)

  def _result(
    self,
    node: _Node,
    begin: Callable[[], Any],
    seconds: float = float('inf'),
  ) -> Any:
    """Returns the result of a call; None after `seconds` or the node's end."""
    call, deadline = begin(), time.monotonic() + seconds
    while node.failure is None and time.monotonic() < deadline:
      try:
        if ray.wait([call], timeout=_READ_SECONDS)[0]:
          return ray.get(call)
      except ray_errors.ActorUnavailableError:  # It may recover.
        time.sleep(_READ_SECONDS)
        call = begin()
      self._read(node)
    return None

  def _lost(self, name: str, node: _Node, problem: str) -> failures.Failure:
    """Returns the failure of a lost node, whose host is avoided from now on."""
    self._avoided.add(node.address)
    where = 'Its host'
    if node.place is not None:
      where += f', {node.address}, or its supervisor there,'
    return failures.Failure(name, f'{where} {problem}', is_lost=True)

  def _kill_supervisor(self, node: _Node) -> None:
    """Kills a supervisor, and so its process."""
    if self.imminent_failure() is None:  # Without the head, this hangs.
      with contextlib.suppress(ray_errors.RayError):
        ray.kill(node.supervisor)

  def _fetch(self, *names: str) -> None:
    for name in names:
      self._read(self._nodes[name])

  def _read(self, node: _Node) -> None:
    """Fetches a node's output to its file, if its supervisor replies."""
    if node.place is None:
      return
    with node.fetching, contextlib.suppress(OSError, ray_errors.RayError):
      call = node.supervisor.read.remote(node.position)
      found, node.position = ray.get(call, timeout=_ANSWER_SECONDS)
      if found:
        os.makedirs(os.path.dirname(node.path), exist_ok=True)
        with open(node.path, 'ab') as file:
          file.write(found)

  def _ask_for_stacks(self, name: str) -> None:
    self._nodes[name].supervisor.ask_for_stacks.remote()


def _in_words(resources: Mapping[str, float]) -> str:
  """Formats resources as in the flag, without Ray's internal ones."""
  written = [
    f'{name}={amount:g}'
    for name, amount in sorted(resources.items())
    if not name.startswith(('node:', 'object_store'))
  ]
  return ', '.join(written) or 'nothing'
