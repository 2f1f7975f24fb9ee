"""Turns seeds into what random generators of other packages take."""

from collections.abc import Sequence

import numpy as np

from repertory.environments import argument_checks

_MAX_SEED = 2**31 - 1


def combine(seeds: Sequence[int]) -> int:
  """Returns one seed, of 31 bits, that depends on all of these.

  What steps many environments at once may count upwards from the only seed it
  takes: with seeds in a row, most of the episodes would come again.

  Raises:
    ValueError: If one is not an integer of at least 0.
  """
  checked = [argument_checks.check_integer('seed', seed, 0) for seed in seeds]
  return int(np.random.SeedSequence(checked).generate_state(1)[0] >> 1)


def fold(seed: int) -> int:
  """Returns a seed of 31 bits; one that is that small stays what it is.

  Raises:
    ValueError: If it is not an integer of at least 0.
  """
  checked = argument_checks.check_integer('seed', seed, 0)
  return checked if checked <= _MAX_SEED else combine([checked])
