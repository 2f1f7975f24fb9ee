"""Conversion of seeds for random generators of other packages."""

from collections.abc import Sequence

import numpy as np

from repertory.environments.values import argument_checks

_MAX_SEED = 2**31 - 1


def combine(seeds: Sequence[int]) -> int:
  """Returns a seed of 31 bits that depends on all given seeds.

  A vector environment may derive the seeds of its slots by counting upwards
  from its single seed; with consecutive seeds, most episodes would repeat.
  """
  checked = [argument_checks.check_integer('seed', seed, 0) for seed in seeds]
  return int(np.random.SeedSequence(checked).generate_state(1)[0] >> 1)


def fold(seed: int) -> int:
  """Returns a seed of 31 bits; smaller seeds are unchanged."""
  checked = argument_checks.check_integer('seed', seed, 0)
  return checked if checked <= _MAX_SEED else combine([checked])
