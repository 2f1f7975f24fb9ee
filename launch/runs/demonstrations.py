"""What an experiment needs to mix demonstrations with replay."""

from collections.abc import Callable

from repertory.components import experience as experience_lib
from repertory.components import roads, signals, specs
from repertory.components.settings import SettingError
from repertory.launch import experiment as experiment_lib
from repertory.launch.runs import offline
from repertory.launch.runs import session as session_lib


def check(
  experiment: experiment_lib.Experiment,
  experience: experience_lib.Experience,
  spec: specs.EnvironmentSpec,
) -> None:
  """Refuses demonstrations that are not there, do not fit or have no share.

  Raises:
    SettingError: Naming what is to be changed.
  """
  paths, fraction = experiment.demonstrations, experiment.demonstration_fraction
  if bool(paths) != bool(fraction):
    raise SettingError(
      'demonstration_fraction',
      'must be above 0 with demonstrations, and 0 without; got '
      f'{fraction:g} and {", ".join(paths) or "none"}.',
    )
  if not paths:
    return
  try:
    offline.check_experience(experiment, experience, spec, paths)
  except SettingError as error:
    if error.setting != 'data':
      raise
    raise SettingError('demonstrations', error.problem) from error


def make(
  session: session_lib.Session,
  stop: signals.StopSignal,
  tell: Callable[[str], None],
) -> roads.Demonstrations | None:
  """Reads the demonstrations of a session, if there are any.

  Args:
    stop: Ends it.
    tell: Hears what takes time.

  Raises:
    DataError: If they cannot be read.
    signals.Stopped: If the stop signal was set.
  """
  paths = session.experiment.demonstrations
  if not paths:
    return None
  tell('reading demonstrations')
  data = offline.open_all(paths)
  demonstrated = session.experience.demonstrated
  road = offline.make_road(session, demonstrated, data, stop)
  road.fill(offline.read(session, data))
  return roads.Demonstrations(session.experience, road)
