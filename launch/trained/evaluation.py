"""Evaluation of trained agents."""

import contextlib
import os
from collections.abc import Callable
from typing import Any

from repertory.components.actors import environment_loop, episode_metrics
from repertory.components.config import settings
from repertory.environments.values import argument_checks
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.experiments import session as session_lib
from repertory.launch.platform import interrupts
from repertory.launch.trained import loading, videos
from repertory.launch.trained import policy as policy_lib


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
    video: Folder for videos of the episodes, see `videos.VideoRecorder`; True
      for `videos` in the experiment's directory, False for no videos.
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
  with interrupts.raising_signals() as is_interrupted:
    trained = loading.read(run, best, trust)
    folder = None
    if video is not False:
      folder = videos.prepare(video, video_format, trained.directory)
    return _run(trained, num_episodes, folder, video_format, is_interrupted)


def _run(
  trained: loading.Trained,
  num_episodes: int,
  folder: str | None,
  video_format: str,
  is_interrupted: Callable[[], bool],
) -> list[environment_loop.Episode]:
  """Runs the episodes; records videos to a folder if there is one."""
  # Ids of the environments follow those of training.
  first = trained.num_environments
  ids = range(first, first + min(loading.BATCH_SIZE, num_episodes))
  seeds = [_make_seed(trained, session_lib.ENVIRONMENTS, i) for i in ids]
  seed = _make_seed(trained, session_lib.EVALUATION_POLICY)
  policy = policy_lib.TrainedPolicy(trained, seed=seed)
  with contextlib.ExitStack() as stack:
    environments: Any = trained.make_environments(seeds, folder is not None)
    stack.callback(environments.close)
    if folder is not None:
      environments = videos.VideoRecorder(
        environments, folder, num_episodes, video_format
      )
      stack.callback(environments.close)
    loop = environment_loop.EnvironmentLoop(
      environments, policy_lib.LoopActor(policy)
    )
    if folder is not None:
      loop.add_observer(environments.keep)
    if trained.experiment is not None:
      loop.read_info(trained.experiment.info)
      if makers := trained.experiment.evaluation_metrics:
        loop.measure(episode_metrics.EpisodeMetrics(makers, len(ids)))
    return loop.run_episodes(num_episodes, is_interrupted)


def _make_seed(trained: loading.Trained, *purpose: int) -> int:
  """Returns the seed of a purpose, as a run would that resumed now."""
  return argument_checks.combine_seeds(
    [trained.identity['seed'], trained.counts['runs'], *purpose]
  )
