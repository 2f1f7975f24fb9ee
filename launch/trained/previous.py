"""Previous actions and rewards, as observed by some agents."""

import numpy as np
import tree

from repertory.components import specs, types
from repertory.environments.values import casting
from repertory.environments.wrappers import previous_action


class PreviousActionTracker:
  """Tracks the last action of each row, as `wrappers.previous_action` does.

  Assumes that the selected actions were executed.
  """

  def __init__(self, spec: specs.EnvironmentSpec):
    """Starts without previous actions.

    Args:
      spec: Specs of the environment.
    """
    self._reward_dtype = np.dtype(spec.rewards.dtype)
    self._initial = [
      (previous_action.make_initial_action(leaf), leaf.dtype)
      for leaf in tree.flatten(spec.actions)
    ]
    self._actions: list[np.ndarray] = []

  def note(self, action: types.Nest) -> None:
    """Stores the selected actions `[B, ...]`."""
    # Copies, since users may modify the arrays.
    self._actions = [np.array(leaf) for leaf in tree.flatten(action)]

  def observe(
    self, first: np.ndarray, reward: np.ndarray | float | None
  ) -> list[np.ndarray]:
    """Returns the leaves of previous actions and rewards, `[B, ...]`.

    Args:
      first: Whether an episode starts in each row, bool `[B]`.
      reward: Rewards of the last actions, `[B]`, or one number for one row.
        Ignored where an episode starts.

    Raises:
      ValueError: If the reward is missing or has another shape.
    """
    if first.all():
      rewards = np.zeros(first.shape, self._reward_dtype)
    else:
      rewards = self._take(reward, first)
    actions = []
    for i, (initial, dtype) in enumerate(self._initial):
      array = np.empty((*first.shape, *initial.shape), dtype)
      array[...] = initial
      if not first.all():
        array[~first] = self._actions[i][~first]
      actions.append(array)
    return [*actions, rewards]

  def _take(
    self, reward: np.ndarray | float | None, first: np.ndarray
  ) -> np.ndarray:
    if reward is None:
      raise ValueError(
        'reward: expected the reward of the last action, found none: this '
        'agent observes it. Call `reset` at the start of an episode.'
      )
    if np.ndim(reward) == 0 and len(first) == 1:
      reward = np.reshape(reward, [1])
    try:
      rewards = casting.cast(reward, first.shape, self._reward_dtype)
    except ValueError as error:
      raise ValueError(f'reward: {error}, a number for each row.') from error
    return np.where(first, rewards.dtype.type(0), rewards)
