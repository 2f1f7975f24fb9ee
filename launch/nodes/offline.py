"""Reads offline data and demonstrations into transports."""

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tree

from repertory.components import offline, specs, transports
from repertory.components.replay import local
from repertory.components.runtime import signals
from repertory.components.transports import experience as experience_lib
from repertory.environments.batches import layout
from repertory.launch.experiments import preflight
from repertory.launch.experiments import session as session_lib

_REPORT_SECONDS = 1.0


def make_transport(
  session: session_lib.Session,
  experience: experience_lib.Experience,
  paths: Sequence[str],
  stop: signals.StopSignal,
  report: Callable[[str], None],
  purpose: int = session_lib.SAMPLING,
  checkpoint_directory: str = '',
) -> transports.OfflineTransport:
  """Makes a transport of all data, converted to items; it may take minutes.

  Args:
    paths: Folders of data sets.
    report: Called every second with the number of steps so far, in words.
    purpose: Purpose of the sampler's seed.
    checkpoint_directory: Folder of snapshots, or ''.
  """
  experiment = session.experiment
  data = [offline.open_data(path) for path in paths]
  transport = transports.OfflineTransport(
    experience,
    experiment.builder.make_adder,
    preflight.lengths_of(data),
    seed=session.make_seed(purpose),
    place=local.WaitPolicy(experiment.timeout_seconds, stop),
    checkpoint_directory=checkpoint_directory,
  )
  reported_at = time.monotonic()

  def count(num_steps: int) -> None:
    nonlocal reported_at
    now = time.monotonic()
    if now - reported_at > _REPORT_SECONDS:
      reported_at = now
      report(f'reading its data, {num_steps:,} steps so far')

  transport.fill(read(session, data), count)
  return transport


def read(
  session: session_lib.Session, data: Sequence[offline.DataSet]
) -> Iterator[offline.DataSetSteps]:
  """Yields all steps, as the agent observes them."""
  spec = preflight.recorded_spec(session.experiment, session.spec)
  shows = session.experiment.builder.observes_previous_action_and_reward
  for one in data:
    for steps in one.read(spec):
      yield _show_previous(steps, spec) if shows else steps


def make_demonstrations(
  session: session_lib.Session,
  stop: signals.StopSignal,
  report: Callable[[str], None],
) -> transports.Demonstrations | None:
  """Reads the demonstrations of a session; None without any."""
  paths = session.experiment.demonstrations
  if not paths:
    return None
  report('reading demonstrations')
  with preflight.as_demonstrations():
    transport = make_transport(
      session,
      session.experience.demonstrated,
      paths,
      stop,
      report,
      session_lib.DEMONSTRATIONS,
    )
  return transports.Demonstrations(session.experience, transport)


def _show_previous(
  steps: offline.DataSetSteps, spec: specs.EnvironmentSpec
) -> offline.DataSetSteps:
  """Adds the previous action and reward to the observations."""
  starts = steps.starts

  def shift(one: specs.Array, actions: np.ndarray) -> np.ndarray:
    shown = np.roll(actions, 1, axis=0)
    shown[starts] = layout.make_initial_action(one)
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
