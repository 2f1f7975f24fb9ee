"""On which host of a Ray cluster each node goes, and with what."""

import ipaddress
import os
import sys
from collections.abc import Mapping
from typing import Any

import cloudpickle
import ray
from ray.util import scheduling_strategies

from repertory.components import interfaces
from repertory.components.settings import SettingError, text_of
from repertory.launch.coordination import kinds
from repertory.launch.launchers import (
  carriers,
  node_process,
  ray_cluster,
  ray_supervisor,
)
from repertory.launch.launchers import program as program_lib

# One waits for the end of the process, another is left for a hanging disk.
_CALLS_AT_ONCE = 4

# Else Ray would hide all GPUs from whoever asks for none.
_GPUS_STAY = {'RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO': '0'}

# What options of Ray are called that are no resources of the user's own.
_OPTIONS = {'CPU': 'num_cpus', 'GPU': 'num_gpus', 'memory': 'memory'}


class Placement:
  """Where nodes go, and what is sent to them.

  Who saves what there is, or is called at an address that all know, is on the
  host that launches. Others are wherever there is room.

  Attributes:
    hosts: The hosts of the cluster, at the start.
    network: Over which hosts reach each other; see `Supervisor.place`. None if
      there is one host alone.
    allows_public: Whether hosts may have addresses of the Internet.
    environment: Where all nodes' processes find what they need.
    carrier: What carries the calls of all nodes, see `carriers`.
    seconds: How long a node may wait for room.
  """

  seconds = 120.0

  def __init__(
    self,
    program: program_lib.Program,
    resources: Mapping[str, Mapping[str, float]],
    network: str,
    allows_public: bool,
  ):
    """Looks at the cluster.

    Args:
      program: Whose nodes are placed.
      resources: What a node asks Ray for, by kind.
      network: As the user named it; '' for that of Ray's own addresses.
      allows_public: Whether hosts may have addresses of the Internet.

    Raises:
      SettingError: If that does not fit the program or the cluster.
    """
    self._program = program
    self._resources = resources
    here = ray.get_runtime_context().get_node_id()
    self.hosts = ray_cluster.living_hosts()
    (self._here,) = [host for host in self.hosts if host.name == here]
    self._is_alone = len(self.hosts) == 1
    self.network = None if self._is_alone else network
    self.allows_public = allows_public
    self._check_addresses(network)
    self._check_resources()
    self.carrier = carriers.chosen()
    # Children must find whatever the launching process could import.
    self.environment = ray_supervisor.Environment(
      [path for path in sys.path if path], os.getcwd()
    )

  def make_supervisor(self, name: str, host: str | None = None) -> Any:
    """Lets Ray place the supervisor of a node, the first or another one.

    Args:
      host: Ray's name of the host to take. Another one is taken if there is no
        room for what the node asks for, unless it must be on this one. None for
        any.
    """
    kind = kinds.kind_of(name)
    strategy: Any = 'SPREAD'
    asked = self._resources.get(kind.name, {})
    if host is not None:
      # Where nothing is asked for there is room, and Ray would choose others if
      # the host is slow to answer, those with a fault among them.
      strategy = scheduling_strategies.NodeAffinitySchedulingStrategy(
        host, soft=bool(asked) and not self._is_pinned(kind)
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
        f'must be what Ray takes, got {asked}: {text_of(error)}',
      ) from error
    return supervisor.remote(name)

  def own_host_of(self, name: str) -> ray_cluster.Host | None:
    """Returns this host if a node must be on it."""
    return self._here if self._is_pinned(kinds.kind_of(name)) else None

  def describe_want(self, name: str) -> str:
    """Says of a node that could not be placed what it waited for."""
    asked = self._resources.get(kinds.kind_of(name).name)
    what = f'{_in_words(asked)} and ' if asked else ''
    return (
      f'Waited {self.seconds:g} seconds for {what}a host that takes it. The '
      f'cluster has {_in_words(ray.cluster_resources())}; free are '
      f'{_in_words(ray.available_resources())}.'
    )

  def load(self, name: str, peers: Mapping[str, str]) -> bytes:
    """Returns what the process of a node is sent.

    Args:
      peers: Addresses of the nodes that it calls, by name.
    """
    cargo = node_process.Cargo.of(self._program, name, peers, self.carrier)
    return cloudpickle.dumps(cargo)

  def _check_addresses(self, network: str) -> None:
    if network:
      try:
        interfaces.of_network(network)
      except ValueError as error:
        raise SettingError('bind_interface', str(error)) from error
    if self._is_alone or self.allows_public or network:
      return  # Of a network that was named, each host tells its own.
    addresses = sorted(host.address for host in self.hosts)
    public = [a for a in addresses if ipaddress.ip_address(a).is_global]
    if public:
      raise SettingError(
        'allow_public_addresses',
        f'must be set for hosts with addresses of the Internet, got '
        f'{", ".join(public)}. Whoever reaches them there can read and '
        'change everything, and run code; better use a private network.',
      )

  def _check_resources(self) -> None:
    """Refuses what no host, or not all of them together, will ever have."""
    found = {kinds.kind_of(name).name for name in self._program.names}
    for kind in self._resources:
      if kind not in found:
        raise SettingError(
          'node_resources',
          f'must be of nodes with a process of their own, '
          f'{", ".join(sorted(found))}; got {kind!r}.',
        )
    there = ray.cluster_resources()
    for kind, asked in self._resources.items():
      names = [n for n in self._program.names if kinds.kind_of(n).name == kind]
      is_pinned = self._is_pinned(kinds.kind_of(names[0]))
      for resource, amount in asked.items():
        hosts = [self._here] if is_pinned else self.hosts
        room = max(host.resources.get(resource, 0) for host in hosts)
        needed = amount * len(names)
        if amount > room or needed > there.get(resource, 0):
          where = 'this host' if is_pinned else 'a host'
          raise SettingError(
            'node_resources',
            f'must fit into the cluster, which has {_in_words(there)}, and '
            f'each node into {where}, with at most {room:g} {resource}; '
            f'got {amount:g} for each of {len(names)} nodes of kind {kind!r}.',
          )

  def _is_pinned(self, kind: kinds.Kind) -> bool:
    """Whether nodes of a kind must be on this host."""
    return self._is_alone or not kind.is_replaceable


def _in_words(resources: Mapping[str, float]) -> str:
  """Writes resources as the flag takes them, without what Ray adds."""
  written = [
    f'{name}={amount:g}'
    for name, amount in sorted(resources.items())
    if not name.startswith(('node:', 'object_store'))
  ]
  return ', '.join(written) or 'nothing'
