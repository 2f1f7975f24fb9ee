"""What all nodes that step environments share; needs no TensorFlow."""

import threading
from collections.abc import Sequence

from repertory.components import environment_loop, signals
from repertory.launch.coordination import reports


class ActingNode:
  """Steps environments while the coordinator grants steps.

  Attributes:
    name: Of the node, 'actor/<index>'.
  """

  def __init__(
    self,
    name: str,
    loops: Sequence[environment_loop.EnvironmentLoop],
    num_environments: int,
    coordinator,
    stop: signals.StopSignal,
  ):
    """Keeps the parts.

    Args:
      name: Of this node.
      loops: Of the environments; they take turns.
      num_environments: Of all loops.
      coordinator: Grants steps and takes counts.
      stop: Ends `run`.
    """
    self.name = name
    self._loops = list(loops)
    self._num_environments = num_environments
    self._coordinator = coordinator
    self._stop = stop
    self._lock = threading.Lock()
    self._steps = 0
    self._total_steps = 0
    self._episodes: list[tuple[float, int]] = []

  @property
  def total_steps(self) -> int:
    """Environment steps since it started."""
    return self._total_steps

  @property
  def environment_seconds(self) -> float:
    """How long an environment has been at a step or reset; 0 if none is."""
    return max(loop.environment_seconds for loop in self._loops)

  def step(self) -> int:
    """Steps all environments once; returns the environment steps this was."""
    num_steps = 0
    for loop in self._loops:
      steps, episodes = loop.step()
      num_steps += steps
      with self._lock:
        self._steps += steps
        self._total_steps += steps
        self._episodes += [(e.episode_return, e.length) for e in episodes]
    return num_steps

  def run(self) -> None:
    """Acts until no more steps are granted, or the stop signal is set."""
    coordinator, granted = self._coordinator, 0
    try:
      while not self._stop.is_set():
        if granted < self._num_environments:
          coordinator.return_steps(self.name, granted)
          granted = coordinator.acquire_steps(self.name, self._num_environments)
          if granted <= 0:
            break
        before = self._total_steps
        try:
          self.step()
        finally:
          # A loop may have stepped before another one raised.
          granted -= self._total_steps - before
    finally:
      coordinator.return_steps(self.name, granted)

  def report(self) -> reports.Directive:
    """Tells the coordinator what was done since the last report."""
    with self._lock:
      steps, episodes = self._steps, self._episodes
      total_steps = self._total_steps
      self._steps, self._episodes = 0, []
    version, age_seconds = self._variables()
    return self._coordinator.report_actor(
      self.name,
      reports.ActorReport(
        steps=steps,
        total_steps=total_steps,
        episodes=episodes,
        environment_seconds=self.environment_seconds,
        version=version,
        age_seconds=age_seconds,
      ),
    )

  def _variables(self) -> tuple[int, float]:
    """Returns version and age of the variables; −1 if others tell them."""
    return -1, 0.0
