"""Launchers of this host, which Launchpad serves where it is installed.

They are told of in the help of a flag: so Launchpad, and TensorFlow with it, is
imported when something is launched.
"""

import threading

from repertory.components.settings import SettingError
from repertory.launch import launchers
from repertory.launch.launchers import carriers, launcher


class _Local(launcher.Launcher):
  """What is the same for threads and processes."""

  def check(self):
    uses_launchpad = _uses_launchpad()  # Refuses an unknown name, too.
    is_main = threading.current_thread() is threading.main_thread()
    if uses_launchpad and not is_main:
      raise SettingError(
        'launch_type',
        f'must be used in the main thread, got {self.name!r} in another: '
        'Launchpad handles operating-system signals, which Python allows there '
        'alone. What needs no launcher, for all is in one thread, may run '
        'anywhere.',
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
    if _uses_launchpad():
      return launchers.launchpad.Threads().launch(program, log_directory)
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
    if _uses_launchpad():
      return launchers.launchpad.Processes().launch(program, log_directory)
    return launchers.local_nodes.launch_processes(program, log_directory)


def _uses_launchpad() -> bool:
  """Returns whether Launchpad is there, and Courier carries calls."""
  return carriers.chosen() == carriers.COURIER
