"""Tests of `components/learners/dual_variable.py`."""

import numpy as np
import pytest

from repertory.components import learners


@pytest.mark.parametrize('value', [1e-6, 0.1, 1.0, 10.0, 1_000.0])
def test_begins_with(value):
  dual = learners.DualVariable(value, [3], 'alpha')
  np.testing.assert_allclose(dual(), [value] * 3, rtol=0.02)
  (variable,) = dual.trainable_variables
  assert variable.name == 'alpha:0'


def test_is_positive_and_comes_back():
  dual = learners.DualVariable(1.0, [], 'temperature')
  dual._raw.assign(-1e6)
  assert 0 < dual() <= 1.1e-8
  dual.limit()
  assert dual._raw == -18
  # log(1 + exp(−18)) and the minimum.
  np.testing.assert_allclose(dual(), 1.523e-8 + 1e-8, rtol=1e-3)


def test_limit_leaves_others_alone():
  dual = learners.DualVariable(2.0, [2], 'alpha')
  before = dual._raw.numpy()
  dual.limit()
  np.testing.assert_array_equal(dual._raw, before)
  learners.DualVariable(1e-30, [], 'least').limit()
