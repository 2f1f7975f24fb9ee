"""Recording of data sets with trained policies."""

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import dm_env
import numpy as np

from repertory import __version__
from repertory.components import offline
from repertory.components.actors import environment_loop
from repertory.components.config import settings
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.opening import directories, environment_batches
from repertory.launch.platform import interrupts
from repertory.launch.trained import loading
from repertory.launch.trained import policy as policy_lib

_FIRST, _LAST = int(dm_env.StepType.FIRST), int(dm_env.StepType.LAST)


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
  trained = loading.read(run, best, trust)
  policy = policy_lib.TrainedPolicy(trained, explore, seed)
  size = min(loading.BATCH_SIZE, num_episodes)
  seeds = np.random.SeedSequence(seed).generate_state(size, np.uint64) >> 2
  with contextlib.ExitStack() as stack:
    is_interrupted = stack.enter_context(interrupts.raising_signals())
    # The policy tracks its previous actions itself.
    plain = environment_batches.EnvironmentSettings(
      trained.environments.factory, False
    )
    environments = trained.make_environments(
      plain, [int(one) for one in seeds], policy.spec
    )
    stack.callback(environments.close)
    manifest = offline.RecordingManifest.of(
      trained.agent, trained.environment, policy.spec, __version__
    )
    offline.prepare(output, manifest, setting='output')
    quota = environment_loop.divide_episodes(num_episodes, size)
    writer = offline.RecordingWriter(output, 'episodes', num_episodes=quota)
    try:
      return _run(environments, policy, writer, quota, is_interrupted)
    finally:
      writer.close(keeps_open=False)


def _run(
  environments: Any,
  policy: policy_lib.TrainedPolicy,
  writer: offline.RecordingWriter,
  quota: Sequence[int],
  is_interrupted: Callable[[], bool],
) -> list[float]:
  """Acts until each slot has finished its quota; returns the episode returns.

  Taking the first episodes to end would favor short ones.
  """
  returns: list[float] = []
  left = np.array(quota)
  totals = np.zeros([environments.batch_size])
  timestep = environments.reset()
  writer.begin(timestep)
  while left.any() and not is_interrupted():
    action = policy.act(timestep.observation, timestep.reward)
    timestep = environments.step(action)
    writer.add(action, timestep)
    first = timestep.step_type == _FIRST
    totals = np.where(first, 0, totals + timestep.reward)
    policy.reset(first)
    ended = (timestep.step_type == _LAST) & (left > 0)
    returns += totals[ended].tolist()
    left[ended] -= 1
  return returns
