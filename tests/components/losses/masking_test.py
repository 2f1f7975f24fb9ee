"""Tests of `components/losses/masking.py`."""

import re

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses
from repertory.components.losses import masking


def slow_mean(values, mask):
  """Σ_{t,b: m_tb} x_tb / |{t,b: m_tb}|, 0 for an empty mask."""
  total, count = 0.0, 0
  for t, b in np.ndindex(*mask.shape):
    if mask[t, b]:
      total += values[t, b]
      count += 1
  return total / count if count else 0.0


class TestMaskedMean:
  def test_by_hand(self):
    mean = losses.masked_mean(
      tf.constant([[1.0, 2.0], [4.0, 8.0]]),
      tf.constant([[True, False], [True, True]]),
    )
    # Not divided by all 4 entries.
    np.testing.assert_allclose(mean, (1 + 4 + 8) / 3, rtol=1e-6)

  @pytest.mark.parametrize('length', [1, 2, 5, 20, 33])
  @pytest.mark.parametrize('batch', [1, 3])
  def test_equals_the_sum_over_counted_steps(self, length, batch):
    random = np.random.default_rng(length)
    values = random.normal(size=[length, batch])
    mask = random.uniform(size=[length, batch]) < 0.6
    np.testing.assert_allclose(
      losses.masked_mean(tf.constant(values), tf.constant(mask)),
      slow_mean(values, mask),
      rtol=1e-12,
    )

  @pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf, 1e30])
  def test_nothing_outside_the_mask_counts(self, bad):
    values = tf.Variable([[1.0, bad], [4.0, 8.0]])
    mask = tf.constant([[True, False], [True, True]])
    with tf.GradientTape() as tape:
      mean = losses.masked_mean(values, mask)
    np.testing.assert_allclose(mean, 13 / 3, rtol=1e-6)
    gradient = tape.gradient(mean, values).numpy()
    np.testing.assert_allclose(gradient, [[1 / 3, 0], [1 / 3, 1 / 3]])
    assert gradient[0, 1] == 0

  @pytest.mark.parametrize('value', [0.0, np.nan])
  def test_without_a_step_it_is_zero(self, value):
    values = tf.Variable([[value], [5.0]])
    with tf.GradientTape() as tape:
      mean = losses.masked_mean(values, tf.zeros([2, 1], tf.bool))
    assert mean.numpy() == 0
    assert tape.gradient(mean, values).numpy().tolist() == [[0], [0]]

  @pytest.mark.parametrize('dtype', [tf.float32, tf.float64])
  def test_keeps_the_dtype(self, dtype):
    mean = losses.masked_mean(tf.ones([2, 1], dtype), tf.ones([2, 1], tf.bool))
    assert mean.dtype == dtype
    assert mean.shape == []

  def test_compiled_equals_eager(self):
    random = np.random.default_rng(0)
    values = tf.constant(random.normal(size=[20, 3]))
    mask = tf.constant(random.uniform(size=[20, 3]) < 0.5)
    compiled = tf.function(
      losses.masked_mean, jit_compile=True, autograph=False
    )
    np.testing.assert_allclose(
      compiled(values, mask), losses.masked_mean(values, mask), rtol=1e-12
    )
    none = tf.zeros([20, 3], tf.bool)
    assert compiled(values, none).numpy() == 0


class TestCheckShapes:
  # Shapes that would broadcast are invalid, too.
  @pytest.mark.parametrize(
    'shape', [[3], [], [3, 1], [1, 2], [2, 3], [3, 2, 1]]
  )
  @pytest.mark.parametrize('ones', [tf.ones, np.ones])
  def test_names_what_does_not_fit(self, shape, ones):
    with pytest.raises(
      ValueError, match=r'^other must have shape \[T, B\] like first, got '
    ):
      masking.check_shapes(
        first=ones([3, 2]), fits=ones([3, 2]), other=ones(shape)
      )

  @pytest.mark.parametrize('ones', [tf.ones, np.ones])
  def test_the_first_needs_two_axes_itself(self, ones):
    with pytest.raises(ValueError, match=r'^first must have shape \[T, B\]'):
      masking.check_shapes(first=ones([3]), other=ones([3]))

  def test_equal_shapes_pass(self):
    masking.check_shapes(a=tf.ones([3, 2]), b=tf.ones([3, 2], tf.bool))
    masking.check_shapes(a=np.ones([3, 2]), b=tf.ones([3, 2]))

  def test_unknown_sizes_pass(self):
    spec = tf.TensorSpec([None, None], tf.float32)

    @tf.function(input_signature=[spec, spec], autograph=False)
    def traced(first, other):
      masking.check_shapes(first=first, other=other)
      return first + other

    assert traced(tf.ones([3, 2]), tf.ones([3, 2])).shape == [3, 2]


class TestCheckBootstrapValue:
  @pytest.mark.parametrize('shape', [[], [1], [3], [1, 2], [2, 1]])
  @pytest.mark.parametrize('ones', [tf.ones, np.ones])
  def test_says_what_does_not_fit(self, shape, ones):
    with pytest.raises(
      ValueError,
      match=r'^bootstrap_value must have shape \[B\] = \(2,\), got '
      + re.escape(str(tf.TensorShape(shape))),
    ):
      masking.check_bootstrap_value(ones(shape), ones([3, 2]))

  @pytest.mark.parametrize('ones', [tf.ones, np.ones])
  @pytest.mark.parametrize('other_ones', [tf.ones, np.ones])
  def test_one_value_per_sequence_passes(self, ones, other_ones):
    masking.check_bootstrap_value(ones([2]), other_ones([3, 2]))
