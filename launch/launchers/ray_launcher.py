"""Launcher on Ray clusters.

The help of a flag lists it, so Ray is only imported at launch.
"""

import dataclasses
import importlib.util
import re
from collections.abc import Mapping

from repertory.components.config import settings
from repertory.components.config.settings import SettingError
from repertory.components.network import network_interfaces
from repertory.launch import launchers
from repertory.launch.coordination import kinds
from repertory.launch.launchers import launcher

_RESOURCE = re.compile(r'([^:=]+):([^:=]+)=([0-9]*\.?[0-9]+)')
_KINDS = tuple(kind.name for kind in kinds.KINDS)


@launcher.register
@dataclasses.dataclass(frozen=True)
class RayLauncher(launcher.Launcher):
  """Nodes in processes placed by Ray."""

  name = 'ray'
  title = 'Ray'
  help = 'processes placed and monitored by Ray'
  can_restart = True
  rank = 2

  ray_address: str = settings.field(
    '',
    'Ray cluster to run on, host:port of its head; default: one of this host.',
  )
  bind_interface: str = settings.field(
    '',
    'network between hosts, as the name of an interface or as 10.0.0.0/16; '
    "default: that of Ray's own addresses.",
  )
  allow_public_addresses: bool = settings.field(
    False,
    'run on hosts with public addresses, where anyone who can reach them can '
    'change everything.',
  )
  node_resources: tuple[str, ...] = settings.field(
    (),
    'Ray resources of nodes, by kind: actor:CPU=1,learner:GPU=1; '
    'default: none.',
  )

  @property
  def spans_hosts(self):
    return bool(self.ray_address)

  @property
  def resources(self) -> Mapping[str, Mapping[str, float]]:
    """Ray resources per node, by kind of node.

    Raises:
      SettingError: If the setting cannot be parsed.
    """
    found: dict[str, dict[str, float]] = {}
    for text in self.node_resources:
      match = _RESOURCE.fullmatch(text)
      if match is None:
        raise SettingError(
          'node_resources',
          "must be '<kind>:<resource>=<amount>', several separated by commas, "
          f'as in actor:CPU=1,learner:GPU=1; got {text!r}.',
        )
      kind, resource, amount = match.groups()
      if resource in found.setdefault(kind, {}):
        raise SettingError(
          'node_resources',
          f'must have {kind}:{resource} only once, got {text!r} too.',
        )
      found[kind][resource] = float(amount)
    return found

  def check(self):
    for name in ('bind_interface', 'allow_public_addresses'):
      if getattr(self, name) and not self.ray_address:
        raise SettingError(
          name,
          f'must be left out without a cluster, got {getattr(self, name)!r}. '
          'Name a cluster.',
          ray_address='host:port',
        )
    if self.bind_interface:  # Nodes on other hosts check their own.
      try:
        network_interfaces.of_network(self.bind_interface)
      except ValueError as error:
        raise SettingError('bind_interface', str(error)) from error
    for kind in self.resources:
      if kind not in _KINDS:
        raise SettingError(
          'node_resources',
          f'must be of kinds of nodes, {", ".join(_KINDS)}; got {kind!r}.'
          f'{settings.did_you_mean(kind, _KINDS)}',
        )
    if importlib.util.find_spec('ray') is None:
      raise SettingError(
        'launch_type',
        "needs the package ray, got 'ray' without it: "
        "pip install 'repertory[ray]'.",
      )
    super().check()
    launchers.ray_cluster.check(self.ray_address)

  def launch(self, program, log_directory):
    return launchers.ray_workers.launch(program, log_directory, self)
