"""Launchers on this host.

The help of a flag lists them, so what they launch is only imported at launch.
"""

from repertory.launch import launchers
from repertory.launch.launchers import launcher


@launcher.register
class ThreadLauncher(launcher.Launcher):
  """Nodes in threads of this process."""

  name = 'local_mt'
  title = 'threads'
  help = 'threads of this process'
  needs_pickles = False
  rank = 0

  def launch(self, program, log_directory):
    local_nodes = launchers.local_nodes
    return local_nodes.launch(program, log_directory, local_nodes.ThreadWorkers)


@launcher.register
class ProcessLauncher(launcher.Launcher):
  """Nodes in processes of this host."""

  name = 'local_mp'
  title = 'processes'
  help = 'processes of this host'
  can_restart = True
  rank = 1

  def launch(self, program, log_directory):
    local_nodes = launchers.local_nodes
    return local_nodes.launch(
      program, log_directory, local_nodes.LocalProcesses
    )
