"""Evaluation of trained agents."""

import contextlib
import dataclasses
import os
from typing import Any

import numpy as np

from repertory.components import actors
from repertory.components.actors import environment_loop
from repertory.components.config import settings
from repertory.components.runtime import devices
from repertory.environments.rendering import rendering
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.nodes import evaluator, video_recording
from repertory.launch.platform import interrupts
from repertory.launch.trained import loading

# Purposes of seeds, as in `Session`.
_ENVIRONMENTS, _POLICY = 0, 2


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
      `video_recording.VideoRecorder`; True for `videos` in
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
  ids = range(min(loading.BATCH_SIZE, num_episodes))
  with contextlib.ExitStack() as stack:
    is_interrupted = stack.enter_context(interrupts.raising_signals())
    trained = loading.read(run, best, trust)
    made, folder = trained.environments, ''
    if video is not False:
      folder = video_recording.prepare(video, video_format, trained.directory)
      factory = rendering.enable(made.factory)
      made = dataclasses.replace(made, factory=factory)
    # Their ids follow those of training.
    first = trained.num_environments
    seeds = [_make_seed(trained, _ENVIRONMENTS, first + i) for i in ids]
    environments: Any = trained.make_environments(made, seeds, trained.spec)
    stack.callback(environments.close)
    policy = trained.make_policy(len(ids), _make_seed(trained, _POLICY))
    if video is not False:
      environments = video_recording.VideoRecorder(
        environments, folder, num_episodes, video_format
      )
      stack.callback(environments.close)
    compiles = trained.builder.config.jit_compile
    if compiles is None:
      compiles = devices.has_accelerator()
    actor = actors.PolicyActor(
      policy, trained.spec.observations, ids, jit_compile=compiles
    )
    loop = environment_loop.EnvironmentLoop(environments, actor)
    if video is not False:
      loop.add_observer(environments.keep)
    if trained.experiment is not None:
      evaluator.measure(trained.experiment, loop, len(ids))
    return loop.run_episodes(num_episodes, should_stop=is_interrupted)


def _make_seed(trained: loading.Trained, *purpose: int) -> int:
  """Returns the seed of a purpose, as a run would that resumed now."""
  entropy = [trained.identity['seed'], trained.counts['runs'], *purpose]
  return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)
