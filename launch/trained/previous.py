"""What some agents observe besides: their last action and its reward."""

import numpy as np
import tree

from repertory.components import specs, types
from repertory.environments import casting, previous_action


class PreviousActionAndReward:
  """Knows the last action of each row, as `environments.previous_action` does.

  It takes it that what the policy chose was done.
  """

  def __init__(self, spec: specs.EnvironmentSpec):
    """Remembers nothing yet.

    Args:
      spec: The environment's.
    """
    self._reward_dtype = np.dtype(spec.rewards.dtype)
    self._initial = [
      (previous_action.make_initial_action(leaf), leaf.dtype)
      for leaf in tree.flatten(spec.actions)
    ]
    self._actions: list[np.ndarray] = []

  def note(self, action: types.Nest) -> None:
    """Takes note of the action `[B, ...]` that was chosen."""
    # Copies: the arrays are the user's.
    self._actions = [np.array(leaf) for leaf in tree.flatten(action)]

  def observe(
    self, first: np.ndarray, reward: np.ndarray | float | None
  ) -> list[np.ndarray]:
    """Returns the leaves of action and reward, `[B, ...]`.

    Args:
      first: Whether an episode begins there, bool `[B]`.
      reward: What the last actions were rewarded with, `[B]`, or one number
        for one row. Where an episode begins, it does not matter.

    Raises:
      ValueError: If it is missing or not of that form.
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
        'reward: expected what the last action was rewarded with, found none: '
        'this agent observes it. Call `reset` where an episode begins.'
      )
    if np.ndim(reward) == 0 and len(first) == 1:
      reward = np.reshape(reward, [1])
    try:
      rewards = casting.cast(reward, first.shape, self._reward_dtype)
    except ValueError as error:
      raise ValueError(f'reward: {error}, a number for each row.') from error
    return np.where(first, rewards.dtype.type(0), rewards)
