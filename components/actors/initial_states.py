"""Initial policy states for any number of rows."""

from collections.abc import Callable

import numpy as np
import tree

from repertory.components import interfaces, types


class InitialStates:
  """Assigns environments' initial states to rows, with distinct random streams.

  Row r gets the settings of environment r mod N. So there may be more rows than
  a run has environments.
  """

  def __init__(
    self,
    make_policy: Callable[[int], interfaces.Policy],
    num_environments: int,
    seed: int,
  ):
    """Stores the arguments; no policy is created yet.

    Args:
      make_policy: Maps a seed to a policy; policies differ in nothing else.
      num_environments: N, number of environments of the policies.
      seed: Seed of all random numbers.
    """
    self._make_policy = make_policy
    self._num_environments = num_environments
    self._seed = seed

  def nest(self) -> types.Nest:
    """Returns the state of one row, `[1, ...]`, in the policy's structure."""
    return self._of_round(0, 1)

  def leaves(self, num_rows: int) -> list[np.ndarray]:
    """Returns the leaves of the first rows, `[num_rows, ...]` each."""
    size = self._num_environments
    rounds = [
      tree.flatten(self._of_round(start // size, min(size, num_rows - start)))
      for start in range(0, num_rows, size)
    ]
    return [np.concatenate(parts) for parts in zip(*rounds)]

  def _of_round(self, index: int, num_rows: int) -> types.Nest:
    entropy = np.random.SeedSequence([self._seed, index])
    seed = int(entropy.generate_state(1)[0] >> 1)
    return self._make_policy(seed).initial_state(range(num_rows))
