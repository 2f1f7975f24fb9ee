"""Random histories, which a slow twin cuts into the same sequences."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from repertory.components import adders
from support.replay import sequence_twin
from support.system import rare_cases

# Episodes to choose from, in steps: mixed, short, hardly any end, long.
_LENGTHS = [[1, 2, 3, 4, 5, 6, 13], [1, 2], [1], [40], [5, 9, 17]]


class _Case(NamedTuple):
  """Settings of the adder, and its input."""

  settings: dict[str, Any]
  histories: list


def _draw(random, **settings):
  """Returns a random case; `settings` are given."""
  length = int(random.integers(2, 10))
  burn_in = int(random.integers(0, length - 1)) if random.random() < 0.6 else 0
  window = length - 1 - burn_in
  period = int(random.integers(1, window + 1))
  drawn = {
    'length': length,
    'burn_in': burn_in,
    'period': None if random.random() < 0.3 else period,
  }
  num_moments = int(random.integers(1, 50))
  lengths = [
    _LENGTHS[random.integers(len(_LENGTHS))]
    for _ in range(random.integers(1, 4))
  ]
  seed = int(random.integers(10**9))
  histories = sequence_twin.make_histories(num_moments, lengths, seed)
  return _Case(drawn | settings, histories)


def _run(case):
  """Returns the items of each slot."""
  sequences = sequence_twin.make_sequences(**case.settings)
  return _by_slot(sequence_twin.record(sequences, case.histories), case)


def _by_slot(items, case):
  rows = [[] for _ in case.histories]
  for item in items:
    rows[sequence_twin.slot_of(item) - 1].append(item)
  return rows


def _expect(case):
  return [
    sequence_twin.make_items(history, **case.settings)
    for history in case.histories
  ]


@pytest.mark.parametrize('across_episodes', [False, True])
@pytest.mark.parametrize('seed', rare_cases.daily(range(150), range(25)))
def test_items_are_the_twins(seed, across_episodes):
  case = _draw(
    np.random.default_rng([1, seed]), across_episodes=across_episodes
  )
  for found, expected in zip(_run(case), _expect(case), strict=True):
    sequence_twin.assert_equal(found, expected)


@pytest.mark.parametrize('across_episodes', [False, True])
def test_no_history_makes_more_items_than_max_items(across_episodes):
  tight = 0
  for seed in range(30):
    case = _draw(
      np.random.default_rng([8, seed]), across_episodes=across_episodes
    )
    sequences = adders.Sequences(**case.settings)
    for history, items in zip(case.histories, _expect(case)):
      num_steps = sum(
        len(moments) - 1 for moments, _ in sequence_twin.split(history)
      )
      most = sequences.max_items(num_steps)
      assert len(items) <= most
      tight += bool(items) and len(items) == most
  assert tight
