"""Training episodes that have ended."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from repertory.launch.coordination import statuses

# Over how many episodes the return is averaged.
_NUM_RETURNS = 100


class Episodes:
  """Counts episodes, and knows the returns of the last ones."""

  def __init__(self, count: int):
    """Goes on counting.

    Args:
      count: Episodes of earlier runs.
    """
    self.count = count
    self._returns: collections.deque[float] = collections.deque(
      maxlen=_NUM_RETURNS
    )

  def take(
    self,
    episodes: Sequence[tuple[float, int]],
    position: Mapping[str, float],
  ) -> dict[str, np.ndarray]:
    """Takes note of episodes.

    Args:
      episodes: Return and length of each, at least one.
      position: Where the run is.

    Returns:
      What is logged of them, an entry of each column for each episode.
    """
    returns, lengths = (np.asarray(column) for column in zip(*episodes))
    size = len(returns)
    self._returns.extend(returns[-_NUM_RETURNS:].tolist())
    self.count += size
    return {
      'episode_return': returns,
      'episode_length': lengths,
      **{name: np.full([size], value) for name, value in position.items()},
      'episodes': np.arange(self.count - size + 1, self.count + 1),
    }

  def figures(self) -> dict[str, Any]:
    """Returns what the display shows of them."""
    returns = self._returns
    return {
      'episodes': self.count,
      'mean_return': statuses.mean(returns),
      'num_returns': len(returns),
    }
