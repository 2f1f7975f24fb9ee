"""How a run is divided among several learners."""

import dataclasses
import os

from repertory.components import checkpointing, roads, specs
from repertory.components import experience as experience_lib
from repertory.launch import experiment as experiment_lib
from repertory.launch.runs import directories, preflight, resuming
from repertory.launch.runs import session as session_lib


def make_experiment(
  experiment: experiment_lib.Experiment, index: int, count: int
) -> experiment_lib.Experiment:
  """Returns what one of several learners runs: a share of all steps.

  One that is alone runs the same but for the directory.

  Args:
    experiment: What all run; its environments can be divided evenly.
    index: Which learner it is, from 0.
    count: How many there are.
  """
  steps, rest = divmod(experiment.max_steps, count)
  return dataclasses.replace(
    experiment,
    max_steps=max(1, steps + (index < rest)),
    num_actors=1,
    environments_per_actor=experiment.num_environments // count,
    directory=os.path.join(
      experiment.directory, directories.LEARNERS, str(index)
    ),
    checkpoints_to_keep=1,
    initial_from=None,
    storage=None,
    observers=(),
    loggers=(),
    stop_when=None,
  )


def describe_experience(
  experiment: experiment_lib.Experiment, spec: specs.EnvironmentSpec
) -> experience_lib.Experience:
  """Returns the experience of a learner, as it travels in its process.

  Args:
    experiment: From `make_experiment`.

  Raises:
    ValueError: If it cannot run so.
  """
  experience = session_lib.describe_experience(experiment, spec)
  kinds = [roads.LocalRoad.kind]
  (way,) = preflight.find_ways(experiment, experience, kinds)
  preflight.check_steps(experiment, experience, kinds)
  return way.experience


def make_sessions(
  session: session_lib.Session, count: int
) -> list[session_lib.Session]:
  """Returns the sessions of several learners, as if they were new.

  Args:
    session: That of the whole run.
    count: How many learners there are.
  """
  experiments = [
    make_experiment(session.experiment, index, count) for index in range(count)
  ]
  # Once, for agents of sequences make a network to tell, and to draw its values
  # while others draw theirs would disturb these.
  experience = describe_experience(experiments[0], session.spec)
  counts = {
    'steps': 0,
    'episodes': 0,
    'learner_steps': 0,
    # By which the seeds of a run differ from those of the ones before.
    'runs': session.counts['runs'],
  }
  return [
    dataclasses.replace(
      session,
      experiment=experiment,
      experience=experience,
      counts=counts,
      is_resumed=False,
      road=roads.LocalRoad.kind,
      initial=None,
      part=session_lib.Part(index, count, session.num_environments),
    )
    for index, experiment in enumerate(experiments)
  ]


def resume(session: session_lib.Session) -> session_lib.Session:
  """Returns the session of a learner that goes on from its own checkpoint.

  Args:
    session: From `make_sessions`; there is a checkpoint in its directory.

  Raises:
    CheckpointError: If that cannot be read.
  """
  directory = session.experiment.directory
  checkpoint = resuming.load_checkpoint(directory)
  if checkpoint is None:
    raise checkpointing.CheckpointError(
      f'There should be a checkpoint in {directory}.'
    )
  checkpointing.place_replay(checkpoint.replay_path, session.replay_directory)
  counts = {**checkpoint.state['counts'], 'runs': session.counts['runs']}
  return dataclasses.replace(session, counts=counts, is_resumed=True)
