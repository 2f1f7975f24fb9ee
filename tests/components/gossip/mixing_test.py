"""Tests of `components/gossip/mixing.py`."""

import numpy as np
import pytest

from repertory.components.config import choices
from repertory.components.gossip import mixing


def test_mix_is_the_mean_of_all_by_hand():
  own, other = np.array([1, 2], np.float32), np.array([3, -2], np.float32)
  np.testing.assert_array_equal(mixing.mix(own, [other], 0.5), [2, 0])
  third = np.array([5, 6], np.float32)
  np.testing.assert_allclose(
    mixing.mix(own, [other, third], 1 / 3), [3, 2], rtol=1e-6
  )


def test_equal_ones_stay_equal_to_the_bit():
  own = np.random.default_rng(0).normal(size=1000).astype(np.float32)
  mixed = mixing.mix(own, [own.copy(), own.copy()], 0.123)
  np.testing.assert_array_equal(mixed, own)


def test_only_floating_point_numbers_are_mixed():
  arrays = {
    'b': np.arange(6, dtype=np.float32).reshape(2, 3),
    'count': np.asarray(7, np.int64),
    'a': np.asarray(2.5, np.float64),
  }
  vector = mixing.join(arrays)
  assert vector.dtype == np.float64
  np.testing.assert_array_equal(vector, [0, 1, 2, 3, 4, 5, 2.5])
  split = mixing.split(vector * 2, arrays)
  np.testing.assert_array_equal(split['b'], arrays['b'] * 2)
  assert split['a'] == 5 and split['count'] == 7
  assert split['b'].dtype == np.float32 and split['a'].shape == ()


def test_nothing_to_mix_is_refused():
  with pytest.raises(ValueError, match=r"floating-point.*got \['n'\]"):
    mixing.join({'n': np.zeros([2], np.int32)})


def test_who_hears_from_whom():
  assert mixing.in_neighbors('ring', 4, 0) == [3]
  assert mixing.out_neighbors('ring', 4, 3) == [0]
  assert mixing.in_neighbors('exponential', 8, 2) == [1, 0, 6]
  assert mixing.in_neighbors('exponential', 6, 0) == [5, 4, 2]
  assert mixing.in_neighbors('complete', 4, 1) == [0, 3, 2]
  for graph in choices.GRAPHS:  # One alone has none.
    assert mixing.in_neighbors(graph, 1, 0) == []


def test_weights_by_hand():
  assert mixing.neighbor_weight('ring', 3, None) == 1 / 2
  assert mixing.neighbor_weight('complete', 5, None) == 1 / 5
  assert mixing.neighbor_weight('complete', 5, 0.2) == 0.05
  assert mixing.neighbor_weight('exponential', 1, None) == 0.0
