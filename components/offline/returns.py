"""Discounted returns of recorded episodes."""

import numpy as np

from repertory.components.offline import data_set


def discounted_returns(
  steps: data_set.DataSetSteps, discount: float
) -> np.ndarray:
  """Computes G_t = r_{t+1} + γ d_{t+1} G_{t+1} at all time steps.

  Returns after the end of an episode are 0, also after truncation.

  Args:
    steps: Time steps of whole episodes, `[N]`, or of parts of them.
    discount: γ.

  Returns:
    Return of the action at each time step, 0 at the last one of an episode,
    `[N]`, float64.
  """
  starts = steps.starts
  lasts = np.append(starts[1:], len(steps.step_type)) - 1
  found = np.zeros([len(steps.step_type)])
  # Backward, one time step of all episodes at once; ended ones drop out.
  rows = lasts - 1
  is_open = rows >= starts
  while is_open.any():
    rows, starts = rows[is_open], starts[is_open]
    after = rows + 1
    found[rows] = (
      steps.reward[after] + discount * steps.discount[after] * found[after]
    )
    rows = rows - 1
    is_open = rows >= starts
  return found
