"""What all nodes that step environments share; needs no TensorFlow."""

import threading
from collections.abc import Sequence

from repertory.components import environment_loop, signals
from repertory.launch import reports


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
    self._episodes: list[tuple[float, int]] = []

  def step(self) -> int:
    """Steps all environments once; returns the environment steps this was."""
    num_steps = 0
    for loop in self._loops:
      steps, episodes = loop.step()
      num_steps += steps
      with self._lock:
        self._steps += steps
        self._episodes += [(e.episode_return, e.length) for e in episodes]
    return num_steps

  def run(self) -> None:
    """Acts until no more steps are granted, or the stop signal is set."""
    granted = 0
    while not self._stop.is_set():
      if granted < self._num_environments:
        self._coordinator.return_steps(granted)
        granted = self._coordinator.acquire_steps(self._num_environments)
        if granted <= 0:
          break
      granted -= self.step()
    self._coordinator.return_steps(granted)

  def report(self) -> reports.Directive:
    """Tells the coordinator what was done since the last report."""
    with self._lock:
      steps, episodes = self._steps, self._episodes
      self._steps, self._episodes = 0, []
    version, age_seconds = self._variables()
    return self._coordinator.report_actor(
      self.name,
      reports.ActorReport(
        steps=steps,
        episodes=episodes,
        version=version,
        age_seconds=age_seconds,
      ),
    )

  def _variables(self) -> tuple[int, float]:
    """Returns version and age of the variables; −1 if others tell them."""
    return -1, 0.0
