"""Launchers on this host.

The help of a flag lists them, so what they launch is only imported at launch.
"""

from repertory.launch import launchers
from repertory.launch.launchers import launcher
from repertory.launch.platform import zygote

# Modules that import most of what nodes need.
_MODULES = [
  f'repertory.launch.{name}'
  for name in ('launchers.node_process', 'nodes.actor', 'nodes.learner')
]


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

  def prepare(self):
    zygote.prepare(_MODULES)

  def launch(self, program, log_directory):
    local_nodes = launchers.local_nodes
    return local_nodes.launch(
      program, log_directory, local_nodes.LocalProcesses
    )
