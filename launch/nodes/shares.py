"""Division of a run among several learners."""

import dataclasses
import os

from repertory.components import specs, transports
from repertory.components.checkpoints import checkpointing
from repertory.components.transports import experience as experience_lib
from repertory.launch.experiments import directories, preflight
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.experiments import session as session_lib


def make_experiment(
  experiment: experiment_lib.Experiment, index: int, count: int
) -> experiment_lib.Experiment:
  """Returns the experiment of one of several learners: a share of all steps."""
  steps, rest = divmod(experiment.max_steps, count)
  period = experiment.checkpoint_period_learner_steps
  return dataclasses.replace(
    experiment,
    max_steps=max(1, steps + (index < rest)),
    num_actors=1,
    environments_per_actor=experiment.num_environments // count,
    directory=os.path.join(
      experiment.directory, directories.LEARNERS, str(index)
    ),
    checkpoints_to_keep=1,
    checkpoint_period_learner_steps=period and max(1, period // count),
    initial_from=None,
    storage=None,
    callbacks=(),
    loggers=(),
    stop_when=None,
  )


def describe_experience(
  experiment: experiment_lib.Experiment, spec: specs.EnvironmentSpec
) -> experience_lib.Experience:
  """Returns the experience of a learner's share, after checking it."""
  kinds = [transports.InProcessTransport.kind]
  experience, _ = preflight.describe(experiment, spec, kinds)
  return experience


def make_sessions(
  session: session_lib.Session, count: int
) -> list[session_lib.Session]:
  """Returns the sessions of several learners, as of new runs."""
  experiments = [
    make_experiment(session.experiment, index, count) for index in range(count)
  ]
  # Only once: agents of sequences make a network for it, whose initial values
  # would change the random numbers of other learners.
  experience = describe_experience(experiments[0], session.spec)
  counts = {
    'steps': 0,
    'episodes': 0,
    'learner_steps': 0,
    # Makes the seeds of a run differ from those of earlier ones.
    'runs': session.counts['runs'],
  }
  return [
    dataclasses.replace(
      session,
      experiment=experiment,
      experience=experience,
      counts=counts,
      is_resumed=False,
      transport=transports.InProcessTransport.kind,
      initial=None,
      part=session_lib.LearnerShare(index, count, session.num_environments),
    )
    for index, experiment in enumerate(experiments)
  ]


def resume(session: session_lib.Session) -> session_lib.Session:
  """Returns the session of a learner that resumes from its own checkpoint."""
  directory = session.experiment.directory
  checkpoint = directories.load_checkpoint(directory)
  if checkpoint is None:
    raise checkpointing.CheckpointError(
      f'A checkpoint must be in {directory}, found none.'
    )
  checkpointing.prepare_replay(checkpoint.replay_path, session.replay_directory)
  counts = {**checkpoint.state['counts'], 'runs': session.counts['runs']}
  return dataclasses.replace(session, counts=counts, is_resumed=True)
