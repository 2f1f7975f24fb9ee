"""Base class of nodes that step environments. Needs no TensorFlow."""

import collections
import threading
from collections.abc import Sequence
from typing import Any

from absl import logging

from repertory.components import offline
from repertory.components.actors import environment_loop
from repertory.launch.coordination import reports
from repertory.launch.nodes import node

# Number of episodes in the mean return of a node.
_NUM_RETURNS = 20


class ActingNode(node.Node):
  """Base class of acting nodes: steps environments within a step budget.

  Attributes:
    total_steps: Environment steps since its start.
    total_episodes: Finished episodes since its start.
    is_in_step: Whether it is stepping, or failed in a step.
  """

  def __init__(
    self,
    context: node.Context,
    loops: Sequence[environment_loop.EnvironmentLoop],
    environment_ids: Sequence[int],
    variable_client: Any = None,
  ):
    """Starts without granted steps.

    Args:
      environment_ids: Ids of all environments of the loops; their number is the
        minimum size of a grant.
      variable_client: Client of the policy's variables; None if the policy is
        elsewhere.
    """
    super().__init__(context)
    self._loops = list(loops)
    self._environment_ids = list(environment_ids)
    self._variable_client = variable_client
    self._is_ending = False
    self._lock = threading.Lock()
    self._steps = 0
    self.total_steps = 0
    self.total_episodes = 0
    self.is_in_step = False
    self._episodes: list[tuple[float, ...]] = []
    self._latest_returns: collections.deque[float] = collections.deque(
      maxlen=_NUM_RETURNS
    )

  @property
  def description(self):
    return {'environment_ids': self._environment_ids}

  @property
  def mean_return(self) -> float | None:
    """Mean return of the latest 20 episodes; None before the first."""
    with self._lock:
      returns = list(self._latest_returns)
    return sum(returns) / len(returns) if returns else None

  @property
  def environment_seconds(self) -> float:
    """Duration of the current environment step or reset; 0 if none runs."""
    return max((loop.environment_seconds for loop in self._loops), default=0.0)

  def step(self) -> int:
    """Steps all environments once; returns the environment steps taken."""
    num_steps = 0
    self.is_in_step = True
    for loop in self._loops:
      steps, episodes = loop.step()
      num_steps += steps
      with self._lock:
        self._steps += steps
        self.total_steps += steps
        self.total_episodes += len(episodes)
        self._latest_returns += [e.episode_return for e in episodes]
        self._episodes += [
          (e.episode_return, e.length, *e.metrics.values()) for e in episodes
        ]
    self.is_in_step = False
    return num_steps

  def run(self) -> None:
    """Acts until no more steps are granted, or the run ends.

    Recordings are written before it returns or raises.
    """
    coordinator, granted = self._coordinator, 0
    num_environments = len(self._environment_ids)
    try:
      while not (self._stop.is_set() or self._is_ending):
        if granted < num_environments:
          unused, granted = granted, 0
          coordinator.return_steps(self.name, unused)
          granted = coordinator.acquire_steps(self.name, num_environments)
          if granted <= 0:
            break
        before = self.total_steps
        try:
          self.step()
        finally:
          # A loop may have stepped before another one raised.
          granted -= self.total_steps - before
    finally:
      try:
        coordinator.return_steps(self.name, granted)
      finally:
        self.write_recordings()

  def write_recordings(self) -> None:
    """Writes pending steps of recordings, and reports lost ones."""
    for loop in self._loops:
      try:
        # Only batches that are recorded have it.
        getattr(loop.environment, 'write_recording', lambda: None)()
      except offline.RecordingError as error:
        self._report_unwritten(error)

  def _report_unwritten(self, error: 'offline.RecordingError') -> None:
    """Reports lost steps at once, since a failed node reports no more."""
    logging.error('%s: %s', self.name, error)
    report = reports.ActorReport(
      steps=0,
      total_steps=self.total_steps,
      episodes=(),
      num_unrecorded=error.num_steps,
      unrecorded_reason=error.reason,
    )
    try:
      self._coordinator.report_actor(self.name, report)
      self._coordinator.warn(self.name, str(error))
    except Exception:  # The run ends with another error.
      logging.exception('%s could not report lost steps.', self.name)

  def report(self) -> reports.HeartbeatReply:
    """Reports the work since the previous heartbeat."""
    with self._lock:
      steps, episodes = self._steps, self._episodes
      total_steps = self.total_steps
      self._steps, self._episodes = 0, []
    client = self._variable_client
    version, age_seconds = -1, 0.0
    # The learner's own variables have no age.
    if client is not None and client.age_seconds is not None:
      version, age_seconds = client.version, client.age_seconds
    reply = self._coordinator.report_actor(
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
    self._is_ending = self._is_ending or reply.is_ending
    return reply
