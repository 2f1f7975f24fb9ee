"""The launcher of Ray clusters.

It is told of in the help of a flag: Ray is imported when something is launched.
"""

import dataclasses
import importlib.util

from repertory.components import settings
from repertory.components.settings import SettingError
from repertory.launch import launchers
from repertory.launch.launchers import launcher


@launcher.register
@dataclasses.dataclass(frozen=True)
class RayLauncher(launcher.Launcher):
  """Nodes in processes that Ray places."""

  name = 'ray'
  title = 'Ray'
  help = 'processes that Ray places and watches'
  can_restart = True
  rank = 2

  ray_address: str = settings.field(
    '',
    'Ray cluster to run on, host:port of its head; default: one of this host.',
  )

  def check(self):
    if importlib.util.find_spec('ray') is None:
      raise SettingError(
        'launch_type',
        "needs the package ray, got 'ray' without it. Install repertory[ray].",
      )
    launchers.ray_cluster.check(self.ray_address)

  def launch(self, program, log_directory):
    return launchers.ray_nodes.launch(program, log_directory, self.ray_address)
