"""Tests of `components/actions/action_scaling.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import specs
from repertory.components.actions import action_scaling

# Bounds that center plus half width miss, or that a cast rounds beyond.
BOUNDS = (
  (-1, 1),
  (0.1, 0.7),
  (1e6, 1e6 + 1),
  (1e30, 3e38),
  (-(2**24) - 1, 2**24 + 1),
)


def make(minimum, maximum, shape=(1,), dtype=np.float32):
  spec = specs.BoundedArray(shape, dtype, minimum, maximum)
  return spec, action_scaling.ActionScaling(spec)


class TestToAction:
  @pytest.mark.parametrize(
    ('bounds', 'dtype'),
    [
      (bounds, dtype)
      for bounds in BOUNDS
      for dtype in ('float16', 'float32', 'float64')
      if max(np.abs(bounds)) < np.finfo(dtype).max
    ],
  )
  def test_stays_within_the_bounds(self, bounds, dtype):
    spec, scaling = make(*bounds, dtype=dtype)
    ends = [-1e30, -2, -1, -1 + 6e-8, 1 - 6e-8, 1, 2, 1e30]
    scaled = np.array([*ends, *np.linspace(-1, 1, 999)], np.float32)
    assert scaled[4] < 1
    action = scaling.to_action(tf.constant(scaled[:, None])).numpy()
    assert action.dtype == dtype
    assert action.shape == (len(scaled), 1)
    for row in action:
      spec.validate(row)
    assert np.all(np.isfinite(action))
    # And it comes as near to them as the dtype can.
    eps = np.finfo(dtype).eps * max(np.abs(bounds)) + np.finfo(dtype).tiny
    np.testing.assert_allclose(action[2], bounds[0], rtol=0, atol=2 * eps)
    np.testing.assert_allclose(action[5], bounds[1], rtol=0, atol=2 * eps)

  def test_by_hand(self):
    _, scaling = make([[-1, 0, 5]], [[1, 4, 6]], shape=(2, 3))
    assert scaling.size == 6
    action = scaling.to_action(
      tf.constant([[-1.0, -1, -1, 1, 1, 1], [0, 0, 0, -0.5, 0.5, -0.5]])
    )
    expected = [
      [[-1, 0, 5], [1, 4, 6]],
      [[0, 2, 5.5], [-0.5, 3, 5.25]],
    ]
    np.testing.assert_array_equal(action, expected)


class TestFromAction:
  def test_limits_what_others_did(self):
    _, scaling = make(-2, 2)
    scaled = scaling.from_action(tf.constant([[-5.0], [1.0], [2.1]]))
    np.testing.assert_array_equal(scaled, [[-1], [0.5], [1]])


class TestSpec:
  @pytest.mark.parametrize(
    'spec',
    [
      specs.Array((2,), np.float32),
      specs.BoundedArray((2,), np.float32, np.nan, 1),
      specs.BoundedArray((2,), np.float32, [5, -1], [5, 1]),
    ],
  )
  def test_refuses_without_bounds(self, spec):
    with pytest.raises(
      ValueError,
      match='must have finite bounds for each number, the upper one larger',
    ) as caught:
      action_scaling.ActionScaling(spec)
    assert repr(spec) in str(caught.value)

  @pytest.mark.parametrize(
    'spec',
    [
      specs.DiscreteArray(3),
      specs.BoundedArray((0,), np.float32, -1, 1),
    ],
  )
  def test_refuses_others(self, spec):
    nest = {'arm': specs.BoundedArray((1,), np.float32, -1, 1), 'hand': [spec]}
    with pytest.raises(
      ValueError, match=r"^actions\['hand'\]\[0\] must be a non-empty array"
    ):
      action_scaling.ActionScaling(nest)


class TestParts:
  SPEC = {  # noqa: RUF012
    'wheel': specs.BoundedArray((), np.float64, -4, 4),
    'arm': specs.BoundedArray((1, 2), np.float32, [[0, -1]], [[2, 1]]),
  }

  def test_by_hand(self):
    scaling = action_scaling.ActionScaling(self.SPEC)
    assert scaling.size == 3
    to_action, from_action = (
      tf.function(method, jit_compile=True, autograph=False)
      for method in (scaling.to_action, scaling.from_action)
    )
    # Sorted: the arm's two numbers, then the wheel's.
    action = to_action(tf.constant([[0.5, -0.5, 0.25], [-9, 9, 9]]))
    assert list(action) == list(self.SPEC)
    assert action['arm'].dtype == tf.float32
    assert action['wheel'].dtype == tf.float64
    np.testing.assert_array_equal(action['arm'], [[[1.5, -0.5]], [[0, 1]]])
    np.testing.assert_array_equal(action['wheel'], [1, 4])
    np.testing.assert_array_equal(
      from_action(action), [[0.5, -0.5, 0.25], [-1, 1, 1]]
    )

  def test_lists_may_have_become_tuples(self):
    arm = specs.BoundedArray((2,), np.float32, -2, 2)
    scaling = action_scaling.ActionScaling([arm, arm])
    action = tf.constant([[1.0, 0]]), tf.constant([[0, -2.0]])
    np.testing.assert_array_equal(
      scaling.from_action(action), [[0.5, 0, 0, -1]]
    )
