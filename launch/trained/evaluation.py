"""Evaluation of trained agents."""

import contextlib
import dataclasses
import os

from repertory.components.actors import environment_loop
from repertory.components.config import settings
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import evaluator
from repertory.launch.platform import interrupts
from repertory.launch.trained import loading, videos


def evaluate(
  run: str | os.PathLike[str] | experiment_lib.Experiment | loading.Trained,
  num_episodes: int,
  *,
  best: bool = False,
  video: str | bool = False,
  video_format: str = 'mp4',
  trust: bool = False,
) -> list[environment_loop.Episode]:
  """Evaluates the newest checkpoint of a run.

  Writes nothing but videos. Recording them does not change the episodes.

  Args:
    run: Directory of a run whose agent and environment are registered; or its
      experiment, for any agent and environment; or a trained agent.
    num_episodes: Number of episodes, at least 1.
    best: Whether to evaluate the policy with the best evaluation return during
      training, instead of the newest.
    video: Folder for videos of the episodes, see
      `videos.VideoRecorder`; True for `videos` in
      the experiment's directory, False for no videos.
    video_format: File format of videos, 'mp4' or 'gif'.
    trust: Whether to import modules named in the checkpoint, such as
      'my_module:MyBuilder', which runs their code.

  Returns:
    The episodes.

  Raises:
    ValueError: If there is no checkpoint, it belongs to another experiment or
      names an untrusted module; or if videos are requested but the folder is
      not usable or the environment cannot render.
    VideoError: If a video cannot be written.
  """
  if num_episodes < 1:
    raise settings.SettingError(
      'num_episodes', f'must be at least 1, got {num_episodes}.'
    )
  with interrupts.raising_signals():
    trained = loading.read(run, best, trust)
  experiment, folder = trained.experiment, None
  with contextlib.ExitStack() as stack:
    is_interrupted = stack.enter_context(interrupts.raising_signals())
    if video is not False:
      folder = videos.prepare(video, video_format, experiment.directory)
      experiment = videos.with_rendering(experiment)
    loop = _make_loop(
      trained,
      dataclasses.replace(experiment, evaluation_episodes=num_episodes),
      stack,
      folder,
      video_format,
    )
    return loop.run_episodes(num_episodes, should_stop=is_interrupted)


def _make_loop(
  trained: loading.Trained,
  experiment: experiment_lib.Experiment,
  stack: contextlib.ExitStack,
  folder: str | None,
  video_format: str,
) -> environment_loop.EnvironmentLoop:
  """Makes the environment loop, to be closed by `stack`."""
  session = session_lib.Session(
    experiment, trained.spec, trained.experience,
    trained.checkpoint.state['counts'], 0.0, is_resumed=True,
  )  # fmt: skip
  environments = evaluator.make_environments(session)
  stack.callback(environments.close)
  if folder is None:
    loop = evaluator.make_loop(session, trained.network, environments)
  else:
    recorder = videos.VideoRecorder(
      environments, folder, experiment.evaluation_episodes, video_format
    )
    stack.callback(recorder.close)
    loop = evaluator.make_loop(session, trained.network, recorder)
    loop.add_observer(recorder.keep)
  evaluator.measure(session, loop)
  return loop
