"""What the launcher goes by, of all that the coordinator knows."""

from repertory.components import loggers
from repertory.launch import experiment as experiment_lib
from repertory.launch.coordination import phases as phases_lib
from repertory.launch.coordination import progress as progress_lib
from repertory.launch.coordination import reports
from repertory.launch.coordination import roster as roster_lib


def observe(
  status: loggers.Status,
  phases: phases_lib.Phases,
  progress: progress_lib.Progress,
  roster: roster_lib.Roster,
  experiment: experiment_lib.Experiment,
) -> reports.Observation:
  """Returns how the run and its nodes do."""
  if not roster.have_all_started():
    progress.get_on()  # Nobody expects it to.
  is_acting = phases.phase == reports.ACTING
  return reports.Observation(
    status=status,
    phase=phases.phase,
    finished=roster.finished(),
    overdue=roster.find_overdue(
      # Before those who wait for it give up.
      experiment.timeout_seconds / 2,
      experiment.stall_seconds,
    ),
    idle_seconds=progress.idle_seconds if is_acting else 0.0,
    laggard=roster.find_laggard(),
  )
