"""Recording of data sets with trained policies."""

import contextlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from repertory import __version__
from repertory.components import offline
from repertory.components.actors import environment_loop
from repertory.components.config import settings
from repertory.environments.batches import recorded
from repertory.launch.experiments import directories
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.platform import interrupts
from repertory.launch.trained import loading
from repertory.launch.trained import policy as policy_lib


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
  if num_episodes < 1:
    raise settings.SettingError(
      'num_episodes', f'must be at least 1, got {num_episodes}.'
    )
  directories.check_new(output, 'output')
  with interrupts.raising_signals() as is_interrupted:
    trained = loading.read(run, best, trust)
    policy = policy_lib.TrainedPolicy(trained, explore, seed)
    size = min(loading.BATCH_SIZE, num_episodes)
    seeds = np.random.SeedSequence(seed).generate_state(size, np.uint64) >> 2
    made: Any = trained.make_environments(seeds.tolist())
    with contextlib.closing(made):
      return _run(made, trained, policy, num_episodes, output, is_interrupted)


def _run(
  environments: Any,
  trained: loading.Trained,
  policy: policy_lib.TrainedPolicy,
  num_episodes: int,
  output: str,
  is_interrupted: Callable[[], bool],
) -> list[float]:
  """Records the episodes; returns their returns."""
  manifest = offline.RecordingManifest.of(
    trained.agent, trained.environment, policy.spec, __version__
  )
  offline.prepare(output, manifest, setting='output')
  quota = environment_loop.divide_episodes(
    num_episodes, environments.batch_size
  )
  writer = offline.RecordingWriter(output, 'episodes', num_episodes=quota)
  loop = environment_loop.EnvironmentLoop(
    recorded.RecordedEnvironments(environments, writer),
    policy_lib.LoopActor(policy),
  )
  try:
    episodes = loop.run_episodes(num_episodes, is_interrupted)
  finally:
    writer.close(keeps_open=False)
  return [episode.episode_return for episode in episodes]
