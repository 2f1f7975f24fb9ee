"""Count and returns of finished training episodes."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from repertory.launch.coordination import statuses
from repertory.launch.opening import session as session_lib

# Number of episodes in the mean return.
_NUM_RETURNS = 100


class EpisodeStatistics:
  """Counts training episodes, and averages the latest returns."""

  def __init__(self, session: session_lib.Session):
    """Continues the count of a resumed run."""
    self.count = session.counts['episodes']
    self._info_names = session.experiment.info
    self._returns: collections.deque[float] = collections.deque(
      maxlen=_NUM_RETURNS
    )

  def take(
    self,
    episodes: Sequence[tuple[float, ...]],
    position: Mapping[str, float],
  ) -> dict[str, np.ndarray]:
    """Records finished episodes.

    Args:
      episodes: Return, length and `info` values of each; at least one.
      position: Step counts and elapsed time of the run.

    Returns:
      Log columns `[K]` by name, for K episodes.
    """
    returns, lengths, *info = (np.asarray(column) for column in zip(*episodes))
    size = len(returns)
    self._returns.extend(returns[-_NUM_RETURNS:].tolist())
    self.count += size
    return {
      'episode_return': returns,
      'episode_length': lengths,
      **dict(zip(self._info_names, info, strict=True)),
      **{name: np.full([size], value) for name, value in position.items()},
      'episodes': np.arange(self.count - size + 1, self.count + 1),
    }

  def figures(self) -> dict[str, Any]:
    """Returns the display figures of episodes."""
    returns = self._returns
    return {
      'episodes': self.count,
      'mean_return': statuses.mean(returns),
      'num_returns': len(returns),
    }
