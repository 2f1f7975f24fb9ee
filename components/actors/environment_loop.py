"""Environment loop: an actor acting in an environment batch."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dm_env
import numpy as np

from repertory.components import core
from repertory.components.actors import episode_metrics

# As integers: comparing with an enum takes ten times as long.
_FIRST, _LAST = int(dm_env.StepType.FIRST), int(dm_env.StepType.LAST)


@dataclasses.dataclass(frozen=True)
class Episode:
  """A finished episode.

  Attributes:
    slot: Its index in the environment batch.
    episode_return: Sum of its rewards, undiscounted.
    length: Steps, its first timestep not counted.
    metrics: Other metrics, by name.
  """

  slot: int
  episode_return: float
  length: int
  metrics: Mapping[str, float] = dataclasses.field(default_factory=dict)


class EnvironmentLoop(core.Worker):
  """Steps environments with an actor's actions and lets it observe the results.

  A slot's step after LAST only starts its next episode, and is not counted.

  Attributes:
    environment: The environment batch.
  """

  def __init__(self, environment: Any, actor: core.Actor):
    """Stores the parts; nothing is stepped yet.

    Args:
      environment: An environment batch, see `environments.batches.batch`.
      actor: The actor, which selects actions; its `update` is called after
        every step, for new variables.
    """
    self.environment = environment
    self._actor = actor
    self._callbacks: list[Callable[[Episode], None]] = []
    self._metrics: episode_metrics.EpisodeMetrics | None = None
    self._info_names: tuple[str, ...] = ()
    self._timestep: dm_env.TimeStep | None = None
    self._entered_at = 0.0  # When the environment was called; 0 outside calls.
    self._returns = np.zeros([environment.batch_size])
    self._lengths = np.zeros([environment.batch_size], np.int64)

  @property
  def environment_seconds(self) -> float:
    """Seconds the environment has spent in the current call; 0 outside calls.

    It may be read from other threads.
    """
    entered_at = self._entered_at
    return time.monotonic() - entered_at if entered_at else 0.0

  def add_observer(self, callback: Callable[[Episode], None]) -> None:
    """Adds a function to be called with every finished episode."""
    self._callbacks.append(callback)

  def measure(self, metrics: episode_metrics.EpisodeMetrics) -> None:
    """Adds metrics to the episodes that start from now on."""
    self._metrics = metrics

  def read_info(self, names: Sequence[str]) -> None:
    """Adds info entries, numbers at episodes' ends, to episodes' metrics."""
    self._info_names = tuple(names)

  def reset(self) -> dm_env.TimeStep:
    """Starts new episodes in all slots; open ones are not reported."""
    self._entered_at = time.monotonic()
    timestep = self._timestep = self.environment.reset()
    self._entered_at = 0.0
    self._returns[:] = 0
    self._lengths[:] = 0
    self._actor.observe_first(timestep)
    if self._metrics is not None:
      self._metrics.step(None, timestep)
    return timestep

  def step(self) -> tuple[int, list[Episode]]:
    """Steps all slots once.

    Returns:
      The number of environment steps taken, at most B, and the episodes that
      ended.
    """
    previous = self._timestep or self.reset()
    action = self._actor.select_action(previous.observation)
    self._entered_at = time.monotonic()
    timestep = self._timestep = self.environment.step(action)
    self._entered_at = 0.0
    self._actor.observe(action, timestep)
    if self._metrics is not None:
      self._metrics.step(action, timestep)
    self._actor.update()
    self._returns += timestep.reward
    self._lengths += 1
    # Python is faster than NumPy for so few numbers.
    step_types = timestep.step_type.tolist()
    num_steps = len(step_types)
    if num_first := step_types.count(_FIRST):
      num_steps -= num_first
      self._lengths[timestep.step_type == _FIRST] = 0
    episodes = [
      self._end_episode(i) for i, t in enumerate(step_types) if t == _LAST
    ]
    for episode in episodes:
      for callback in self._callbacks:
        callback(episode)
    return num_steps, episodes

  def run(
    self, num_episodes: int | None = None, num_steps: int | None = None
  ) -> None:
    """Steps until one of the limits is reached, or for ever without one.

    Args:
      num_episodes: Finished episodes, over all slots.
      num_steps: Environment steps, over all slots; the last step of the batch
        may go beyond by up to B − 1.
    """
    steps_done, episodes_done = 0, 0
    while (num_episodes is None or episodes_done < num_episodes) and (
      num_steps is None or steps_done < num_steps
    ):
      steps, episodes = self.step()
      steps_done += steps
      episodes_done += len(episodes)

  def run_episodes(
    self,
    num_episodes: int,
    should_stop: Callable[[], bool] = lambda: False,
  ) -> list[Episode]:
    """Runs new episodes for an unbiased estimate.

    Each slot contributes the same number, give or take one.

    Args:
      num_episodes: Number of episodes, at least 1.
      should_stop: Called before every step; True ends the run early.

    Returns:
      The episodes; fewer only if stopped.
    """
    quota = divide_episodes(num_episodes, self.environment.batch_size)
    episodes: list[Episode] = []
    self.reset()
    while len(episodes) < num_episodes and not should_stop():
      for episode in self.step()[1]:
        if quota[episode.slot] > 0:
          quota[episode.slot] -= 1
          episodes.append(episode)
    return episodes

  def save(self) -> dict[str, Any]:
    """Returns the environments and their episodes' state, to be pickled."""
    return {
      'environment': self.environment,
      'timestep': self._timestep,
      'returns': self._returns,
      'lengths': self._lengths,
    }

  def restore(self, state: Mapping[str, Any]) -> None:
    """Resumes from the state returned by `save`, with its environments."""
    self.environment = state['environment']
    self._timestep = state['timestep']
    self._returns = state['returns']
    self._lengths = state['lengths']

  def _end_episode(self, slot: int) -> Episode:
    metrics = {} if self._metrics is None else self._metrics.values(slot)
    if self._info_names:
      info = self.environment.info(slot)
      metrics |= episode_metrics.read_info(info, self._info_names)
    episode = Episode(
      slot=slot,
      episode_return=float(self._returns[slot]),
      length=int(self._lengths[slot]),
      metrics=metrics,
    )
    self._returns[slot] = 0
    self._lengths[slot] = 0
    return episode


def divide_episodes(num_episodes: int, batch_size: int) -> list[int]:
  """Returns how many of the evaluation episodes each slot contributes."""
  return [
    num_episodes // batch_size + (slot < num_episodes % batch_size)
    for slot in range(batch_size)
  ]
