"""Reads offline data and demonstrations into transports."""

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tree

from repertory.components import offline, specs, transports
from repertory.components.replay import local
from repertory.components.runtime import signals
from repertory.components.transports import experience as experience_lib
from repertory.environments.wrappers import previous_action
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import offline_checks

_REPORT_SECONDS = 1.0


def make_transport(
  session: session_lib.Session,
  experience: experience_lib.Experience,
  data: Sequence[offline.DataSet],
  stop: signals.StopSignal,
  purpose: int = session_lib.SAMPLING,
  checkpoint_directory: str = '',
) -> transports.OfflineTransport:
  """Makes the offline transport, to be filled with the steps of `read`.

  `purpose` is that of the sampler's seed; `checkpoint_directory` is the folder
  of snapshots, or ''.
  """
  experiment = session.experiment
  return transports.OfflineTransport(
    experience,
    experiment.builder,
    offline_checks.lengths_of(data),
    seed=session.make_seed(purpose),
    place=local.WaitPolicy(experiment.timeout_seconds, stop),
    checkpoint_directory=checkpoint_directory,
  )


def read(
  session: session_lib.Session, data: Sequence[offline.DataSet]
) -> Iterator[offline.DataSetSteps]:
  """Yields all steps, as the agent observes them."""
  spec = offline_checks.recorded_spec(session.experiment, session.spec)
  shows = session.experiment.builder.observes_previous_action_and_reward
  for one in data:
    for steps in one.read(spec):
      yield _show_previous(steps, spec) if shows else steps


def fill(
  transport: transports.OfflineTransport,
  session: session_lib.Session,
  data: Sequence[offline.DataSet],
  report: Callable[[str], None],
) -> None:
  """Converts all data to the items of a transport; it may take minutes.

  `report` is called every second with the number of steps so far, in words.
  """
  reported_at = time.monotonic()

  def count(num_steps: int) -> None:
    nonlocal reported_at
    now = time.monotonic()
    if now - reported_at > _REPORT_SECONDS:
      reported_at = now
      report(f'reading its data, {num_steps:,} steps so far')

  transport.fill(read(session, data), count)


def make_demonstrations(
  session: session_lib.Session,
  stop: signals.StopSignal,
  report: Callable[[str], None],
) -> transports.Demonstrations | None:
  """Reads the demonstrations of a session, if there are any; see `fill`."""
  paths = session.experiment.demonstrations
  if not paths:
    return None
  report('reading demonstrations')
  data = offline_checks.open_all(paths)
  transport = make_transport(
    session,
    session.experience.demonstrated,
    data,
    stop,
    session_lib.DEMONSTRATIONS,
  )
  with offline_checks.as_demonstrations():
    fill(transport, session, data, report)
  return transports.Demonstrations(session.experience, transport)


def _show_previous(
  steps: offline.DataSetSteps, spec: specs.EnvironmentSpec
) -> offline.DataSetSteps:
  """Adds the previous action and reward to the observations."""
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
