"""Evaluation of trained agents, and recording of data sets with them."""

import contextlib
import os
from typing import Any

import numpy as np

from repertory import __version__
from repertory.components import offline
from repertory.components.actors import environment_loop, episode_metrics
from repertory.components.config import settings
from repertory.environments.batches import recorded
from repertory.environments.values import argument_checks
from repertory.launch.experiments import directories
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
  _check(num_episodes)
  with (
    interrupts.raising_signals() as is_interrupted,
    contextlib.ExitStack() as stack,
  ):
    trained = loading.read(run, best, trust)
    folder = None
    if video is not False:
      folder = videos.prepare(video, video_format, trained.directory)
    seed = _make_seed(trained, session_lib.EVALUATION_POLICY)
    policy = policy_lib.TrainedPolicy(trained, seed=seed)
    size = min(loading.BATCH_SIZE, num_episodes)
    made: Any = _make_environments(trained, size, folder is not None)
    stack.callback(made.close)
    if folder is not None:
      made = videos.VideoRecorder(made, folder, num_episodes, video_format)
      stack.callback(made.close)
    loop = environment_loop.EnvironmentLoop(made, policy_lib.LoopActor(policy))
    if folder is not None:
      loop.add_observer(made.keep)
    if trained.experiment is not None:
      loop.read_info(trained.experiment.info)
      if makers := trained.experiment.evaluation_metrics:
        loop.measure(episode_metrics.EpisodeMetrics(makers, size))
    return loop.run_episodes(num_episodes, is_interrupted)


def _make_environments(
  trained: loading.Trained, size: int, renders: bool
) -> Any:
  # Ids of the environments follow those of training.
  ids = [trained.num_environments + i for i in range(size)]
  seeds = [_make_seed(trained, session_lib.ENVIRONMENTS, i) for i in ids]
  return trained.make_environments(seeds, renders)


def _make_seed(trained: loading.Trained, *purpose: int) -> int:
  """Returns the seed of a purpose, as a run would that resumed now."""
  return argument_checks.combine_seeds(
    [trained.identity['seed'], trained.counts['runs'], *purpose]
  )


def record(
  run: str | os.PathLike[str] | experiment_lib.Experiment | loading.Trained,
  num_episodes: int,
  output: str,
  *,
  best: bool = False,
  explore: bool = False,
  seed: int = 0,
  trust: bool = False,
) -> list[float]:
  """Records episodes of a trained policy, as a data set.

  Args:
    run: Directory of a run, or its experiment, or a trained agent; see
      `launch.evaluate`.
    num_episodes: Number of whole episodes, at least 1. After an interruption,
      the episodes finished so far are kept.
    output: Folder of the data set; must be new or empty.
    best: Whether to use the policy with the best evaluation return during
      training, instead of the newest.
    explore: Whether to use the behavior policy of training, instead of the
      evaluation policy.
    seed: Seed of the environments and the policy.
    trust: Whether to import modules named in the checkpoint, such as
      'my_module:MyBuilder', which runs their code.

  Returns:
    The undiscounted returns of the episodes.

  Raises:
    SettingError: If `num_episodes` is below 1, or the folder is neither new nor
      empty, or not writable.
    RecordingError: If some steps could not be written.
  """
  _check(num_episodes)
  directories.check_new(output, 'output')
  with interrupts.raising_signals() as is_interrupted:
    trained = loading.read(run, best, trust)
    policy = policy_lib.TrainedPolicy(trained, explore, seed)
    size = min(loading.BATCH_SIZE, num_episodes)
    seeds = np.random.SeedSequence(seed).generate_state(size, np.uint64) >> 2
    made: Any = trained.make_environments(seeds.tolist())
    with contextlib.closing(made):
      manifest = offline.RecordingManifest.of(
        trained.agent, trained.environment, policy.spec, __version__
      )
      offline.prepare(output, manifest, setting='output')
      quota = environment_loop.divide_episodes(num_episodes, size)
      writer = offline.RecordingWriter(output, 'episodes', num_episodes=quota)
      loop = environment_loop.EnvironmentLoop(
        recorded.RecordedEnvironments(made, writer),
        policy_lib.LoopActor(policy),
      )
      try:
        episodes = loop.run_episodes(num_episodes, is_interrupted)
      finally:
        writer.close(keeps_open=False)
  return [episode.episode_return for episode in episodes]


def _check(num_episodes: int) -> None:
  if num_episodes < 1:
    raise settings.SettingError(
      'num_episodes', f'must be at least 1, got {num_episodes}.'
    )
