"""Launchers on this host.

The help of a flag lists them, so what they launch is only imported at launch.
"""

import threading

from repertory.components.config.settings import SettingError
from repertory.launch import launchers
from repertory.launch.launchers import launcher


class _Local(launcher.Launcher):
  """Shared parts of the launchers of threads and processes."""

  def check(self):
    is_main = threading.current_thread() is threading.main_thread()
    # Also checks the variable. Courier comes with Launchpad.
    if launchers.rpc.chosen() == launchers.rpc.COURIER and not is_main:
      raise SettingError(
        'launch_type',
        f'must be used in the main thread, got {self.name!r} in another: '
        'Launchpad handles operating-system signals, which Python allows only '
        'there. Topologies in one thread, without a launcher, may run in any.',
      )


@launcher.register
class ThreadLauncher(_Local):
  """Nodes in threads of this process."""

  name = 'local_mt'
  title = 'threads'
  help = 'threads of this process'
  needs_pickles = False
  rank = 0

  def launch(self, program, log_directory):
    return launchers.local_nodes.launch_threads(program, log_directory)


@launcher.register
class ProcessLauncher(_Local):
  """Nodes in processes of this host."""

  name = 'local_mp'
  title = 'processes'
  help = 'processes of this host'
  can_restart = True
  rank = 1

  def launch(self, program, log_directory):
    return launchers.local_nodes.launch_processes(program, log_directory)
