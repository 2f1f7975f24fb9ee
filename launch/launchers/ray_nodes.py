"""How the nodes of a program get to the hosts of a Ray cluster."""

import contextlib
import functools
import os
import sys
from collections.abc import Iterator
from typing import Any

import cloudpickle
import ray
from absl import logging
from ray.util import scheduling_strategies

from repertory.components import interfaces
from repertory.components.settings import SettingError
from repertory.launch.coordination import kinds
from repertory.launch.host import printed
from repertory.launch.launchers import (
  courier_servers,
  node_process,
  ray_cluster,
  ray_supervisor,
  ray_workers,
)
from repertory.launch.launchers import program as program_lib

# How long all nodes may take to be placed.
_PLACE_SECONDS = 120.0
_ANSWER_SECONDS = 30.0
_END_SECONDS = 10.0
# One waits for the end of the process, another is left for a hanging disk.
_CALLS_AT_ONCE = 4


@contextlib.contextmanager
def launch(
  program: program_lib.Program, log_directory: str, address: str = ''
) -> Iterator[ray_workers.RayWorkers]:
  """Launches a program; see `launcher.Launcher.launch`.

  Args:
    address: See `ray_cluster.connected`.
  """
  printed.set_aside(log_directory)
  with ray_cluster.connected(address):
    placement = _Placement(program)
    with placement.ended():
      placement.wait()
      workers = placement.start(log_directory)
      try:
        yield workers
      finally:
        for name in workers.end():
          logging.warning('%s did not end.', name)


class _Placement:
  """The supervisors of all nodes, on the hosts where Ray has placed them."""

  def __init__(self, program: program_lib.Program):
    """Lets Ray place them."""
    self._program = program
    self._here = ray.get_runtime_context().get_node_id()
    self._places: dict[str, tuple[str, interfaces.Interface]] = {}
    self._supervisors: dict[str, Any] = {}
    for plan in program:
      self._make(plan.name)
    self._cargo: dict[str, bytes] = {}

  @contextlib.contextmanager
  def ended(self) -> Iterator[None]:
    """Ends the supervisors with the block, and what they have started."""
    try:
      yield
    finally:
      supervisors = self._supervisors.values()
      ending = [supervisor.end.remote() for supervisor in supervisors]
      if ending:
        ray.wait(ending, num_returns=len(ending), timeout=_END_SECONDS)
      for supervisor in supervisors:
        ray.kill(supervisor)

  def wait(self) -> None:
    """Waits until all are placed, and finds out where.

    Raises:
      SettingError: If the cluster has no room for some of them.
    """
    calls = {
      supervisor.place.remote(): name
      for name, supervisor in self._supervisors.items()
    }
    _, missing = ray.wait(
      list(calls), num_returns=len(calls), timeout=_PLACE_SECONDS
    )
    if missing:
      names = ', '.join(sorted(calls[call] for call in missing))
      raise SettingError(
        'ray_address',
        f'must be of a cluster with room for all nodes: {names} could not be '
        f'placed within {_PLACE_SECONDS:g} s. It has {ray.cluster_resources()},'
        f' of which {ray.available_resources()} are free.',
      )
    self._places = {name: ray.get(call) for call, name in calls.items()}
    if {host for host, _ in self._places.values()} == {self._here}:
      here = self._here, interfaces.LOOPBACK
      self._places = dict.fromkeys(self._places, here)

  def start(self, log_directory: str) -> ray_workers.RayWorkers:
    """Starts all nodes."""
    program = self._program
    ports = self._hold_ports()
    addresses = {
      name: self._places[name][1].address(port) for name, port in ports.items()
    }
    for plan in program:
      callees = {name for one in (plan, *plan.beside) for name in one.calls}
      cargo = node_process.Cargo(
        plan,
        {name: addresses[name] for name in sorted(callees)},
        ports.get(plan.name),
        self._places[plan.name][1],
        program.call_timeout_seconds,
        program.max_waiting_calls,
      )
      self._cargo[plan.name] = cloudpickle.dumps(cargo)
    starting = [
      self._start(supervisor, name, 0)
      for name, supervisor in self._supervisors.items()
    ]
    ray.get(starting, timeout=_ANSWER_SECONDS)
    return ray_workers.RayWorkers(
      program,
      {
        name: functools.partial(
          courier_servers.make_client, at, program.call_timeout_seconds
        )
        for name, at in addresses.items()
      },
      self._supervisors,
      self._make,
      lambda *one: ray.get(self._start(*one), timeout=_ANSWER_SECONDS),
      {
        name: os.path.join(log_directory, label)
        for name, label in program.labels.items()
      },
    )

  def _hold_ports(self) -> dict[str, int]:
    """Keeps a port free for each node that serves, on its host."""
    calls = {
      plan.name: self._supervisors[plan.name].hold_port.remote()
      for plan in self._program
      if plan.kind.serves
    }
    found = ray.get(list(calls.values()), timeout=_ANSWER_SECONDS)
    return dict(zip(calls, found))

  def _make(self, name: str) -> Any:
    """Lets Ray place the supervisor of a node, the first or another one.

    Who saves what there is, or is called at an address that all know, is on
    this host, or where it was; others are anywhere.
    """
    strategy: Any = 'SPREAD'
    kind = kinds.kind_of(name)
    if kind.serves:
      host = self._here
      if kind is kinds.INFERENCE and name in self._places:
        host, _ = self._places[name]
      strategy = scheduling_strategies.NodeAffinitySchedulingStrategy(
        host, soft=False
      )
    supervisor = ray.remote(ray_supervisor.Supervisor)
    self._supervisors[name] = supervisor.options(
      num_cpus=0, max_concurrency=_CALLS_AT_ONCE, scheduling_strategy=strategy
    ).remote()
    return self._supervisors[name]

  def _start(self, supervisor: Any, name: str, life: int) -> Any:
    """Starts a life of a node."""
    environment = {
      # Children must find whatever the launching process could import.
      'PYTHONPATH': os.pathsep.join(path for path in sys.path if path),
    }
    return supervisor.start.remote(self._cargo[name], environment, life)
