"""Observation of a run and its nodes, for the launcher's supervision."""

from repertory.components import loggers
from repertory.launch.coordination import node_registry as node_registry_lib
from repertory.launch.coordination import phases as phases_lib
from repertory.launch.coordination import progress as progress_lib
from repertory.launch.coordination import reports
from repertory.launch.experiments import experiment as experiment_lib


def observe(
  status: loggers.Status,
  phases: phases_lib.Phases,
  progress: progress_lib.Progress,
  node_registry: node_registry_lib.NodeRegistry,
  experiment: experiment_lib.Experiment,
) -> reports.Observation:
  """Returns the state of the run and its nodes."""
  if not node_registry.have_all_started():
    progress.mark_progress()  # A start is no stall.
  is_acting = phases.phase == reports.ACTING
  return reports.Observation(
    status=status,
    phase=phases.phase,
    finished=node_registry.finished(),
    overdue=node_registry.find_overdue(
      # Before the waits of other nodes time out.
      experiment.timeout_seconds / 2,
      experiment.stall_seconds,
    ),
    idle_seconds=progress.idle_seconds if is_acting else 0.0,
    slowest=node_registry.find_slowest(),
  )
