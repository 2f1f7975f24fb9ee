"""Workers in processes on a Ray cluster, each with a supervisor."""

import collections
import contextlib
import dataclasses
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import cloudpickle
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
from repertory.launch.platform import printed

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
  """State of a node in its current generation.

  Its supervisor has a pending call, which is polled: first of `place`; once all
  callees are placed, of `run`, which lasts to the end of the process. If that
  fails because the supervisor is lost, so is the node.
  """

  supervisor: Any  # Ray's handle.
  wanted: str  # Address of the preferred host.
  generation: int
  since: float = dataclasses.field(default_factory=time.monotonic)
  call: Any = None  # The pending call; None if it is to be made.
  place: ray_supervisor.NodeAddress | None = None
  is_started: bool = False
  failure: failures.Failure | None = None  # How it ended.
  position: int = 0  # Of its output, up to which it has been fetched.


class RayWorkers(launcher.Workers):
  """Workers in processes started by supervisors on the hosts of a cluster.

  Nodes that save checkpoints, or need a fixed address, are pinned to the
  launching host. Others may be on any host with free resources.
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
    self._nodes: dict[str, _Node] = {}
    # Living hosts where nodes were lost or did not start.
    self._avoided: set[str] = set()
    self._ended = threading.Event()
    self._fetching = threading.Lock()  # Held while output is fetched.
    self._fetcher = threading.Thread(target=self._fetch_output, daemon=True)
    self._fetcher.start()

  def address_of(self, name: str) -> str | None:
    self.is_alive(name)  # Updates its state.
    place = self._nodes[name].place
    if place is None or place.port is None:
      return None
    return place.interface.address(place.port)

  def is_alive(self, name: str) -> bool:
    node = self._nodes.get(name)
    if node is None:  # The launch has failed before.
      return False
    if node.failure is None:
      self._advance(name, node)
    return node.failure is None

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
    seconds = launcher.HURRIED_SECONDS if self.is_forced else _ANSWER_SECONDS
    started = [node for node in alive.values() if node.is_started]
    _wait_for_all([node.supervisor.kill.remote() for node in started], seconds)
    deadline = time.monotonic() + seconds
    for name, node in alive.items():
      while node.is_started and self.is_alive(name):
        if time.monotonic() > deadline:
          break
        time.sleep(_POLL_SECONDS)
      if self.is_alive(name):
        self._kill_supervisor(node)
        self._lose(name, f'{_describe_place(node)} did not reply.')

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
    self._ended.set()
    self._fetcher.join()
    self._fetch(*self._nodes)
    for node in self._nodes.values():
      self._kill_supervisor(node)

  def _choose_host(self) -> Mapping[str, Any] | None:
    """Returns the host with the fewest nodes per CPU; None for any.

    Excludes hosts where nodes were lost. Ray's own spreading may place all
    nodes without resources on one host.
    """
    taken = collections.Counter(map(_address_of, self._nodes.values()))

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
    wanted = host['NodeManagerAddress'] if host else ''
    self._nodes[name] = _Node(supervisor.remote(name), wanted, generation)
    self._advance(name, self._nodes[name])

  def _advance(self, name: str, node: _Node) -> None:
    """Advances a node's state by the result of its pending call."""
    node.call = node.call or self._make_call(name, node)
    if node.call is None or not _wait_for_all([node.call], 0):
      self._check_time(name, node)
      return
    call, node.call = node.call, None
    try:
      result: Any = ray.get(call)
    except ray_errors.ActorUnavailableError:  # It may recover.
      return
    except (ray_errors.RayTaskError, ray_errors.RuntimeEnvSetupError) as error:
      cause = getattr(error, 'cause', error)
      self._lose(
        name,
        f'It could not be started: {text_of(cause)}',
        is_bad_input=isinstance(cause, ValueError),
        is_lost=False,
      )
    except ray_errors.RayError as error:
      message = ' '.join(text_of(error).split())
      self._lose(
        name, f'Ray says: {message}\n{_describe_place(node)} was lost.'
      )
    else:
      if node.place is None:
        node.place = result
        node.call = self._make_call(name, node)
      else:
        node.failure = failures.of_exit(name, result)

  def _make_call(self, name: str, node: _Node) -> Any:
    """Makes the node's next call; returns None while a callee has no place."""
    if node.place is None:
      return node.supervisor.place.remote(
        self._network, self._allows_public, self.program[name].kind.serves
      )
    peers = {n: self.address_of(n) for n in self.program.callees_of(name)}
    if None in peers.values():
      return None
    launch_spec = node_process.NodeLaunchSpec(
      self.program[name],
      cast(Mapping[str, str], peers),
      self.program.rpc,
      node.place.port,
      node.place.interface,
      node.generation,
    )
    node.is_started = True
    return node.supervisor.run.remote(
      cloudpickle.dumps(launch_spec), sys.path, os.getcwd()
    )

  def _lose(self, name: str, loss: str, **properties: Any) -> None:
    """Records a loss, after which the node's host is avoided."""
    node, properties = self._nodes[name], {'is_lost': True, **properties}
    node.failure = failures.Failure(name, loss, **properties)
    self._avoided.add(_address_of(node))

  def _check_time(self, name: str, node: _Node) -> None:
    """Marks a node as lost if it is not placed in time."""
    seconds = time.monotonic() - node.since
    if node.place is None and seconds > _PLACE_SECONDS:
      asked = self._resources.get(kinds.kind_of(name).name)
      what = f'{_in_words(asked)} and ' if asked else ''
      loss = (
        f'Waited {_PLACE_SECONDS:g} seconds for {what}a host for it. The '
        f'cluster has {_in_words(ray.cluster_resources())}; free are '
        f'{_in_words(ray.available_resources())}.'
      )
      node.failure = failures.Failure(name, loss, is_lost=True)

  def _kill_supervisor(self, node: _Node) -> None:
    """Kills a supervisor, and so its process."""
    if self.imminent_failure() is None:  # Without the head, this hangs.
      with contextlib.suppress(ray_errors.RayError):
        ray.kill(node.supervisor)

  def _fetch_output(self) -> None:
    """Fetches output of nodes to their files until the end."""
    while not self._ended.wait(_READ_SECONDS):
      self._fetch(*self._nodes)

  def _fetch(self, *names: str) -> None:
    """Fetches output of nodes to their files, if their supervisors reply."""
    with self._fetching:
      nodes = {n: self._nodes[n] for n in names if self._nodes[n].place}
      reading = {
        node.supervisor.read.remote(node.position): name
        for name, node in nodes.items()
      }
      for call in _wait_for_all(list(reading), _ANSWER_SECONDS):
        name = reading[call]
        with contextlib.suppress(OSError, ray_errors.RayError):
          found, nodes[name].position = ray.get(call)
          if found:
            os.makedirs(os.path.dirname(self._paths[name]), exist_ok=True)
            with open(self._paths[name], 'ab') as file:
              file.write(found)

  def _ask_for_stacks(self, name: str) -> None:
    self._nodes[name].supervisor.ask_for_stacks.remote()


def _address_of(node: _Node) -> str:
  """Returns the address of a node's host, or of the preferred one."""
  return node.place.address if node.place else node.wanted


def _describe_place(node: _Node) -> str:
  if node.place is None:
    return 'Its host'
  return f'Its host, {node.place.address}, or its supervisor there,'


def _wait_for_all(calls: Sequence[Any], seconds: float) -> Sequence[Any]:
  """Waits for calls; returns those that are done."""
  if not calls:
    return []
  return ray.wait(list(calls), num_returns=len(calls), timeout=seconds)[0]


def _in_words(resources: Mapping[str, float]) -> str:
  """Formats resources as in the flag, without Ray's internal ones."""
  written = [
    f'{name}={amount:g}'
    for name, amount in sorted(resources.items())
    if not name.startswith(('node:', 'object_store'))
  ]
  return ', '.join(written) or 'nothing'
