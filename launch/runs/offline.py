"""What an experiment needs to learn from data."""

from collections.abc import Iterator, Sequence

import numpy as np
import tree

from repertory.components import experience as experience_lib
from repertory.components import recordings, roads, signals, specs
from repertory.components.replay import local
from repertory.components.settings import SettingError
from repertory.environments import previous_action
from repertory.launch import experiment as experiment_lib
from repertory.launch.host import machine_memory
from repertory.launch.runs import recording
from repertory.launch.runs import session as session_lib

# What there is only where somebody acts.
_OF_ACTING = ('record', 'environments_per_actor', 'demonstrations')


def check(experiment: experiment_lib.Experiment, paths: Sequence[str]) -> None:
  """Refuses settings of acting, and data that are not there.

  Raises:
    SettingError: Naming the setting.
  """
  for name in _OF_ACTING:
    if getattr(experiment, name):
      raise SettingError(
        name,
        "must be left out with topology 'offline', where nobody acts; got "
        f'{getattr(experiment, name)!r}.',
      )
  if experiment.num_actors != 1:
    raise SettingError(
      'num_actors',
      "must be left out with topology 'offline', where nobody acts; got "
      f'{experiment.num_actors}.',
    )
  if not paths:
    raise SettingError(
      'data',
      'must name the folder of what was recorded, or several; got none. '
      '`repertory record` and `repertory train --record` write some.',
    )


def check_experience(
  experiment: experiment_lib.Experiment,
  experience: experience_lib.Experience,
  spec: specs.EnvironmentSpec,
  paths: Sequence[str],
) -> None:
  """Refuses agents that cannot learn from data, and data of something else.

  Raises:
    SettingError: Naming what is to be changed.
    DataError: Naming the data, and what is wrong with them.
  """
  try:
    roads.check_data(experience, experiment.builder)
  except ValueError as error:
    raise SettingError(
      'agent',
      f"'{experiment.agent}' cannot learn from data: {str(error).rstrip('.')}.",
    ) from error
  data = open_all(paths)
  raw = recording.recorded_spec(experiment, spec)
  for one in data:
    one.check(raw)
  table = roads.unlimited(experience, lengths_of(data)).table
  needed, total = (
    local.item_bytes(table) * table.max_size,
    machine_memory.total_bytes(),
  )
  if needed > total:
    in_words = machine_memory.gigabytes
    raise SettingError(
      'data',
      f'must fit into the {in_words(total)} of memory as items of the agent; '
      f'got {table.max_size:,} items of {local.item_bytes(table):,} bytes '
      f'each, {in_words(needed)}.',
    )


def open_all(paths: Sequence[str]) -> list[recordings.DataSet]:
  """Opens all data sets, in this order."""
  return [recordings.open_data(path) for path in paths]


def lengths_of(data: Sequence[recordings.DataSet]) -> np.ndarray:
  """Returns how many steps all episodes have."""
  return np.concatenate([one.lengths for one in data])


def make_road(
  session: session_lib.Session,
  experience: experience_lib.Experience,
  data: Sequence[recordings.DataSet],
  stop: signals.StopSignal,
  checkpoint_directory: str = '',
) -> roads.DataRoad:
  """Makes the road of data, which is to be filled with what `read` yields."""
  experiment = session.experiment
  return roads.DataRoad(
    experience,
    experiment.builder,
    lengths_of(data),
    seed=session.make_seed(session_lib.SAMPLING),
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
