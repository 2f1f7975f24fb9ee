"""Nodes that Ray places, each with a supervisor beside it."""

import contextlib
import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray import exceptions as ray_errors

from repertory.components.settings import SettingError
from repertory.launch import failures
from repertory.launch.coordination import kinds
from repertory.launch.launchers import (
  courier_servers,
  polled_workers,
  ray_cluster,
  ray_printed,
  ray_supervisor,
)
from repertory.launch.launchers import program as program_lib

# A supervisor answers at once if its host can be reached.
_ANSWER_SECONDS = 10.0
_START_SECONDS = 60.0
_END_SECONDS = 10.0
# How often is looked where nodes are, when one must be there to go on.
_LOOK_SECONDS = 0.05


@dataclasses.dataclass
class _Node:
  """A node, in its life of now.

  Each call to its supervisor is asked once, and looked at until it is answered.
  That which waits for the end of the process is there as long as the process;
  if the answer is that the supervisor is gone, so is the node.

  Attributes:
    supervisor: Ray's handle.
    placing: The call that tells where it is.
    since: When it was made, or began to start.
    life: How often the node was started before.
    place: Where it is, when it is placed.
    starting: The call that starts its process.
    ending: The call that waits for the end of that.
    code: The exit code, when it has ended.
    loss: What became of it, if there is no exit code.
    is_lost: Whether it may do better somewhere else.
  """

  supervisor: Any
  placing: Any
  since: float
  life: int = 0
  place: ray_supervisor.Place | None = None
  starting: Any = None
  ending: Any = None
  code: Any = None
  loss: str = ''
  is_lost: bool = True


class RayWorkers(polled_workers.ProcessWorkers):
  """Nodes in processes that supervisors start, on the hosts of a cluster."""

  def __init__(
    self,
    program: program_lib.Program,
    placement: Any,
    heart: ray_cluster.Heart,
    paths: Mapping[str, str],
  ):
    """Lets all nodes be placed.

    Args:
      program: Whose they are.
      placement: Says where: a `ray_placement.Placement`.
      heart: Knows whether the head of the cluster lives.
      paths: By node, the file to which what it prints is fetched.
    """
    super().__init__(program, {}, paths)
    self._placement = placement
    self._heart = heart
    self._nodes: dict[str, _Node] = {}
    self._shut_out: Sequence[str] = ()
    self._addresses: set[str] = set()
    self._printed = ray_printed.Printed(paths)
    for name in program.names:
      self._place(name)

  def wait_for_services(self) -> None:
    """Waits until all that others call are placed.

    Raises:
      SettingError: If the cluster has no room for one.
    """
    for name in self.program.served:
      while self._nodes[name].place is None:
        if not self.is_alive(name):
          raise SettingError(
            'ray_address',
            f'must be of a cluster that takes all nodes, but of {name}: '
            f'{self._nodes[name].loss}',
          )
        time.sleep(_LOOK_SECONDS)

  def client(self, name: str) -> Any:
    deadline = time.monotonic() + _ANSWER_SECONDS
    while (address := self._address_of(name)) is None:
      if not self.is_alive(name) or time.monotonic() > deadline:
        raise failures.NodeError(
          failures.Failure(name, 'It has no place yet.', is_lost=True)
        )
      time.sleep(_LOOK_SECONDS)
    return courier_servers.make_client(
      address, self.program.call_timeout_seconds
    )

  def is_alive(self, name: str) -> bool:
    node = self._nodes[name]
    if node.code is None and not node.loss:
      self._advance(name, node)
    return node.code is None and not node.loss

  def failure_of(self, name: str) -> failures.Failure:
    node = self._nodes[name]
    if node.loss:
      return failures.Failure(name, node.loss, is_lost=node.is_lost)
    return polled_workers.describe_end(name, node.code or 0)

  def find_trouble(self) -> failures.Failure | None:
    if not self._heart.is_silent:
      return None
    return failures.Failure(
      kinds.COORDINATOR.name,
      f'The head of the Ray cluster has not answered for '
      f'{ray_cluster.SILENCE_SECONDS:g} seconds. Without it Ray ends all '
      'processes soon. Start it again; the same command goes on from the last '
      'checkpoint.',
    )

  def waiting(self) -> str:
    names = [n for n, node in self._nodes.items() if node.place is None]
    if not names:
      return ''
    return f'waiting for room for {", ".join(names)}'

  def kill(self, name: str) -> str:
    owner = self.program.owner_of(name)
    node = self._nodes[owner]
    if self.is_alive(owner):
      try:
        if node.ending is None:
          raise ray_errors.GetTimeoutError
        ray.get(node.supervisor.kill.remote(), timeout=_ANSWER_SECONDS)
        ray.wait([node.ending], timeout=_ANSWER_SECONDS)
      except (ray_errors.GetTimeoutError, ray_errors.RayError):
        self._let_go(node)  # And with it the process, by the kernel.
        node.loss = f'{self._describe_place(node)} did not answer.'
    return owner

  def restart(self, name: str) -> None:
    self._printed.fetch(name)
    node = self._nodes[name]
    life = node.life + 1
    if node.loss:
      self._shut_out_lost_hosts()
      self._let_go(node)
      self._place(name)
      self._nodes[name].life = life
      return
    node.starting = node.ending = node.code = None
    node.life, node.since = life, time.monotonic()
    self._advance(name, node)

  def end(self) -> list[str]:
    for node in self._nodes.values():
      if node.starting is None:
        self._let_go(node)
        node.loss = node.loss or 'It was ended before it began.'
    hanging = super().end()
    self._printed.close()
    supervisors = [node.supervisor for node in self._nodes.values()]
    ending = [supervisor.end.remote() for supervisor in supervisors]
    if ending:
      ray.wait(ending, num_returns=len(ending), timeout=_END_SECONDS)
    for node in self._nodes.values():
      self._let_go(node)
    return hanging

  def _place(self, name: str) -> None:
    """Lets the supervisor of a node be placed, the first or another one."""
    supervisor = self._placement.make_supervisor(name)
    placing = supervisor.place.remote(
      self._placement.network, self.program[name].kind.serves
    )
    self._nodes[name] = _Node(supervisor, placing, time.monotonic())
    self._printed.begin(name, supervisor)

  def _advance(self, name: str, node: _Node) -> None:
    """Goes on with a node as far as it is known how that went."""
    try:
      if node.place is None and _is_answered(node.placing):
        place = node.place = _result_of(node.placing)
        self._addresses.add(place.address)
        node.since = time.monotonic()
      if node.place is not None and node.starting is None:
        node.starting = self._start(name, node)
      if node.ending is None and _is_answered(node.starting):
        _result_of(node.starting)
        node.ending = node.supervisor.wait_for_end.remote()
      if _is_answered(node.ending):
        node.code = _result_of(node.ending)
    except ray_errors.ActorUnavailableError:  # It may come back.
      self._ask_again(name, node)
    except ray_errors.RayTaskError as error:
      node.loss, node.is_lost = f'It could not be started: {error.cause}', False
    except ray_errors.RayError:
      node.loss = f'{self._describe_place(node)} was lost.'
    else:
      self._check_time(name, node)

  def _ask_again(self, name: str, node: _Node) -> None:
    """Repeats the call whose answer was that it could not be delivered."""
    if node.place is None:
      node.placing = node.supervisor.place.remote(
        self._placement.network, self.program[name].kind.serves
      )
    elif node.ending is None:
      node.starting = None
    else:
      node.ending = node.supervisor.wait_for_end.remote()

  def _check_time(self, name: str, node: _Node) -> None:
    """Takes a node for lost that is not placed, or not started, in time."""
    seconds = time.monotonic() - node.since
    if node.place is None and seconds > self._placement.seconds:
      node.loss = self._placement.describe_want(name)
    elif node.starting and not node.ending and seconds > _START_SECONDS:
      node.loss = (
        f'{self._describe_place(node)} did not start it within '
        f'{_START_SECONDS:g} s.'
      )

  def _start(self, name: str, node: _Node) -> Any:
    """Starts a life of a node if all that it calls are placed."""
    peers = {}
    for callee in self._placement.callees(name):
      peers[callee] = self._address_of(callee)
      if peers[callee] is None:
        return None
    cargo = self._placement.load(name, peers)
    environment = self._placement.environment
    return node.supervisor.start.remote(cargo, environment, node.life)

  def _address_of(self, name: str) -> str | None:
    place = self._nodes[name].place
    if place is None or place.port is None:
      return None
    return place.interface.address(place.port)

  def _shut_out_lost_hosts(self) -> None:
    """Sees to it that replay hears nothing more from hosts that are lost.

    What is there may live on, behind a link that was cut. If it comes back when
    others have taken its place, it is told so by the coordinator; but before it
    hears that, it would write to replay.

    Raises:
      failures.NodeError: If replay does not answer.
    """
    replay = kinds.REPLAY.name
    if replay not in self.program.served:
      return
    living = set(ray_cluster.living_hosts().values())
    lost = sorted(self._addresses - living)
    if lost == self._shut_out:
      return
    service = self.client(replay)  # Held until the call is over.
    call = service.futures.shut_out(lost)
    try:
      call.result(_ANSWER_SECONDS)
    except Exception as error:
      call.cancel()
      cause = f'It did not shut out {lost}: {type(error).__name__}: {error}'
      raise failures.NodeError(
        failures.Failure(replay, cause, is_lost=True)
      ) from error
    self._shut_out = lost

  def _let_go(self, node: _Node) -> None:
    """Ends a supervisor, and with it the process, by the kernel."""
    if not self._heart.is_silent:  # Without the head, this would hang.
      with contextlib.suppress(ray_errors.RayError):
        ray.kill(node.supervisor)

  def _describe_place(self, node: _Node) -> str:
    if node.place is None:
      return 'Its host'
    return f'Its host, {node.place.address}, or what watches it there,'

  def _fetch(self, name: str) -> None:
    self._printed.fetch(name)

  def _ask_for_stacks(self, name: str) -> None:
    self._nodes[name].supervisor.ask_for_stacks.remote()


def _result_of(call: Any) -> Any:
  return ray.get(call)


def _is_answered(call: Any) -> bool:
  return call is not None and bool(ray.wait([call], timeout=0)[0])
