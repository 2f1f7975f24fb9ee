"""Placement of nodes on the hosts of a Ray cluster."""

import ipaddress
import os
import sys
from collections.abc import Mapping
from typing import Any

import cloudpickle
import ray
from ray.util import scheduling_strategies

from repertory.components.config.settings import SettingError, text_of
from repertory.components.runtime import network_interfaces
from repertory.launch.coordination import kinds
from repertory.launch.launchers import node_graph as node_graph_lib
from repertory.launch.launchers import (
  node_process,
  ray_cluster,
  ray_supervisor,
  rpc,
)

# Concurrent calls of a supervisor: one waits for the end of the process, and
# another may hang in disk I/O.
_CALLS_AT_ONCE = 4

# Otherwise Ray would hide all GPUs from nodes that request none.
_GPUS_STAY = {'RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO': '0'}

# Names of Ray options for built-in resources.
_OPTIONS = {'CPU': 'num_cpus', 'GPU': 'num_gpus', 'memory': 'memory'}


class Placement:
  """Placement of nodes, and their launch specs.

  Nodes that save checkpoints, or need a fixed address, are pinned to the
  launching host. Others may be on any host with free resources.

  Attributes:
    hosts: The hosts of the cluster at the start.
    network: Network between hosts, see `Supervisor.place`; None for a single
      host.
    allows_public: Whether hosts may have public addresses.
    environment: Import paths and working directory of node processes.
    rpc_name: Name of the RPC library, see `rpc`.
    seconds: Time-out of placing a node.
  """

  seconds = 120.0

  def __init__(
    self,
    program: node_graph_lib.NodeGraph,
    resources: Mapping[str, Mapping[str, float]],
    network: str,
    allows_public: bool,
  ):
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
    self.rpc_name = rpc.chosen()
    # Child processes must find the same modules as this process.
    self.environment = ray_supervisor.Environment(
      [path for path in sys.path if path], os.getcwd()
    )

  def make_supervisor(self, name: str, host: str | None = None) -> Any:
    """Creates the supervisor of a node, preferably on a host (Ray's id)."""
    kind = kinds.kind_of(name)
    strategy: Any = 'SPREAD'
    asked = self._resources.get(kind.name, {})
    if host is not None:
      # Without requested resources, the preference is strict: otherwise Ray
      # would choose other hosts, even faulty ones, if the host is slow to
      # reply.
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
        f'must be resources that Ray accepts, got {asked}: {text_of(error)}',
      ) from error
    return supervisor.remote(name)

  def own_host_of(self, name: str) -> ray_cluster.ClusterHost | None:
    """Returns this host for pinned nodes, otherwise None."""
    return self._here if self._is_pinned(kinds.kind_of(name)) else None

  def describe_want(self, name: str) -> str:
    """Describes what a node that could not be placed was waiting for."""
    asked = self._resources.get(kinds.kind_of(name).name)
    what = f'{_in_words(asked)} and ' if asked else ''
    return (
      f'Waited {self.seconds:g} seconds for {what}a host for it. The '
      f'cluster has {_in_words(ray.cluster_resources())}; free are '
      f'{_in_words(ray.available_resources())}.'
    )

  def load(self, name: str, peers: Mapping[str, str]) -> bytes:
    """Returns the pickled launch spec of a node."""
    launch_spec = node_process.NodeLaunchSpec.of(
      self._program, name, peers, self.rpc_name
    )
    return cloudpickle.dumps(launch_spec)

  def _check_addresses(self, network: str) -> None:
    if network:
      try:
        network_interfaces.of_network(network)
      except ValueError as error:
        raise SettingError('bind_interface', str(error)) from error
    if self._is_alone or self.allows_public or network:
      return  # Each host reports its address in a named network.
    addresses = sorted(host.address for host in self.hosts)
    public = [a for a in addresses if ipaddress.ip_address(a).is_global]
    if public:
      raise SettingError(
        'allow_public_addresses',
        f'must be set for hosts with public addresses, got '
        f'{", ".join(public)}. Anyone who can reach them can read and '
        'change everything, and run code. Prefer a private network.',
      )

  def _check_resources(self) -> None:
    """Checks that requested resources fit into hosts and cluster."""
    found = {kinds.kind_of(name).name for name in self._program.names}
    for kind in self._resources:
      if kind not in found:
        raise SettingError(
          'node_resources',
          f'must be of nodes with their own process, '
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
    """Returns whether nodes of a kind must be on this host."""
    return self._is_alone or not kind.is_replaceable


def _in_words(resources: Mapping[str, float]) -> str:
  """Formats resources as in the flag, without Ray's internal ones."""
  written = [
    f'{name}={amount:g}'
    for name, amount in sorted(resources.items())
    if not name.startswith(('node:', 'object_store'))
  ]
  return ', '.join(written) or 'nothing'
