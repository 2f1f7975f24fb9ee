"""Data as an experiment learns from them."""

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tree

from repertory.components import experience as experience_lib
from repertory.components import recordings, roads, signals, specs
from repertory.components.replay import local
from repertory.environments import previous_action
from repertory.launch.runs import data_checks, recording
from repertory.launch.runs import session as session_lib

_REPORT_SECONDS = 1.0


def make_road(
  session: session_lib.Session,
  experience: experience_lib.Experience,
  data: Sequence[recordings.DataSet],
  stop: signals.StopSignal,
  purpose: int = session_lib.SAMPLING,
  checkpoint_directory: str = '',
) -> roads.DataRoad:
  """Makes the road of data, which is to be filled with what `read` yields.

  Args:
    experience: How they are cut and drawn.
    data: What there is.
    stop: Ends every wait.
    purpose: Seeds the draws.
    checkpoint_directory: Where snapshots are; empty for none.
  """
  experiment = session.experiment
  return roads.DataRoad(
    experience,
    experiment.builder,
    data_checks.lengths_of(data),
    seed=session.make_seed(purpose),
    place=local.Place(experiment.timeout_seconds, stop, warning_seconds=None),
    checkpoint_directory=checkpoint_directory,
  )


def read(
  session: session_lib.Session, data: Sequence[recordings.DataSet]
) -> Iterator[recordings.Steps]:
  """Yields all moments, as the agent observes them."""
  spec = recording.recorded_spec(session.experiment, session.spec)
  shows = session.experiment.builder.observes_previous_action_and_reward
  for one in data:
    for steps in one.read(spec):
      yield _show_previous(steps, spec) if shows else steps


def fill(
  road: roads.DataRoad,
  session: session_lib.Session,
  data: Sequence[recordings.DataSet],
  report: Callable[[str], None],
) -> None:
  """Cuts all data into the items of a road.

  Args:
    report: Called every second with the number of steps so far, in words.
      Millions of steps take minutes, in which nothing else shows progress.

  Raises:
    SettingError: If they cannot be read.
    signals.Stopped: If the stop signal was set.
  """
  reported_at = time.monotonic()

  def count(num_moments: int) -> None:
    nonlocal reported_at
    now = time.monotonic()
    if now - reported_at > _REPORT_SECONDS:
      reported_at = now
      report(f'reading its data, {num_moments:,} steps so far')

  road.fill(read(session, data), count)


def make_demonstrations(
  session: session_lib.Session,
  stop: signals.StopSignal,
  tell: Callable[[str], None],
) -> roads.Demonstrations | None:
  """Reads the demonstrations of a session, if there are any.

  Args:
    stop: Ends it.
    tell: Hears what takes time.

  Raises:
    SettingError: If they cannot be read.
    signals.Stopped: If the stop signal was set.
  """
  paths = session.experiment.demonstrations
  if not paths:
    return None
  tell('reading demonstrations')
  data = data_checks.open_all(paths)
  road = make_road(
    session,
    session.experience.demonstrated,
    data,
    stop,
    session_lib.DEMONSTRATIONS,
  )
  with data_checks.as_demonstrations():
    fill(road, session, data, tell)
  return roads.Demonstrations(session.experience, road)


def _show_previous(
  steps: recordings.Steps, spec: specs.EnvironmentSpec
) -> recordings.Steps:
  """Adds the action and the reward that led there to the observations."""
  starts = steps.starts

  def shift(one: specs.Array, actions: np.ndarray) -> np.ndarray:
    shown = np.roll(actions, 1, axis=0)
    shown[starts] = previous_action.make_initial_action(one)
    return shown

  rewards = steps.reward.copy()
  rewards[starts] = 0
  return steps._replace(
    observation={
      'observation': steps.observation,
      'previous_action': tree.map_structure(shift, spec.actions, steps.action),
      'previous_reward': rewards,
    }
  )
