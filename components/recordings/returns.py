"""What episodes that were recorded are worth."""

import numpy as np

from repertory.components.recordings import data_set


def discounted_returns(steps: data_set.Steps, discount: float) -> np.ndarray:
  """Computes G_t = r_{t+1} + γ d_{t+1} G_{t+1} of all moments.

  What comes after an episode is worth 0, also if it was broken off.

  Args:
    steps: Moments of whole episodes, `[N]`, or of parts of them.
    discount: γ.

  Returns:
    Returns of what was done at each moment, 0 at the last one of an episode,
    `[N]`, float64.
  """
  starts = steps.starts
  lasts = np.append(starts[1:], len(steps.step_type)) - 1
  found = np.zeros([len(steps.step_type)])
  # Backward, a moment of all episodes at once; those that are over drop out.
  places = lasts - 1
  is_open = places >= starts
  while is_open.any():
    places, starts = places[is_open], starts[is_open]
    after = places + 1
    found[places] = (
      steps.reward[after] + discount * steps.discount[after] * found[after]
    )
    places = places - 1
    is_open = places >= starts
  return found
