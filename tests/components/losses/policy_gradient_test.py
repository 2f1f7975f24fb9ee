"""Tests of `components/losses/policy_gradient.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses

SIZES = [(1, 1), (2, 3), (5, 2), (20, 3), (33, 4)]
# Three of four steps count.
MASK = [[True, True], [False, True]]


def slow_policy_gradient_loss(log_probs, advantages, mask):
  """−1/N Σ log π(a_t | x_t) A_t."""
  steps = [i for i in np.ndindex(*mask.shape) if mask[i]]
  return -sum(log_probs[i] * advantages[i] for i in steps) / max(len(steps), 1)


def slow_entropy_loss(entropies, mask):
  """−1/N Σ H_t."""
  steps = [i for i in np.ndindex(*mask.shape) if mask[i]]
  return -sum(entropies[i] for i in steps) / max(len(steps), 1)


def slow_value_loss(values, targets, mask):
  """1/N Σ ½ (v_t − V(x_t))²."""
  steps = [i for i in np.ndindex(*mask.shape) if mask[i]]
  squares = sum((targets[i] - values[i]) ** 2 / 2 for i in steps)
  return squares / max(len(steps), 1)


def numeric_gradient(function, x):
  gradient = np.zeros_like(x)
  for index in np.ndindex(*x.shape):
    step = np.zeros_like(x)
    step[index] = 1e-6
    gradient[index] = (function(x + step) - function(x - step)) / 2e-6
  return gradient


def value_and_gradients(loss, *inputs, mask):
  """Returns the loss and its gradients, None where none flows."""
  variables = [tf.Variable(x) for x in inputs]
  with tf.GradientTape() as tape:
    value = loss(*variables, tf.constant(mask))
  return value.numpy(), tape.gradient(value, variables)


class TestPolicyGradientLoss:
  def test_by_hand(self):
    loss, (gradient, none) = value_and_gradients(
      losses.policy_gradient_loss,
      [[-1.0, -2.0], [-3.0, -4.0]],
      [[2.0, -1.0], [10.0, 3.0]],
      mask=MASK,
    )
    np.testing.assert_allclose(
      loss, -(-1 * 2 + -2 * -1 + -4 * 3) / 3, rtol=1e-6
    )
    # −A / 3: the likelihood of better actions increases.
    np.testing.assert_allclose(gradient, [[-2 / 3, 1 / 3], [0, -1]], rtol=1e-6)
    assert none is None

  @pytest.mark.parametrize('size', SIZES)
  def test_equals_the_equation(self, size):
    random = np.random.default_rng(size[0])
    log_probs, advantages = random.normal(size=[2, *size])
    mask = random.uniform(size=size) < 0.7
    loss, (gradient, _) = value_and_gradients(
      losses.policy_gradient_loss, log_probs, advantages, mask=mask
    )
    np.testing.assert_allclose(
      loss, slow_policy_gradient_loss(log_probs, advantages, mask), rtol=1e-10
    )
    numeric = numeric_gradient(
      lambda x: slow_policy_gradient_loss(x, advantages, mask), log_probs
    )
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)
    assert np.all(gradient.numpy()[~mask] == 0)

  @pytest.mark.parametrize(
    ('log_prob', 'advantage'), [(-np.inf, 0.0), (np.nan, 5.0), (1e30, 1e30)]
  )
  def test_nothing_outside_the_mask_counts(self, log_prob, advantage):
    loss, (gradient, _) = value_and_gradients(
      losses.policy_gradient_loss,
      [[-1.0, -2.0], [log_prob, -4.0]],
      [[2.0, -1.0], [advantage, 3.0]],
      mask=MASK,
    )
    np.testing.assert_allclose(loss, 4, rtol=1e-6)
    np.testing.assert_allclose(gradient, [[-2 / 3, 1 / 3], [0, -1]], rtol=1e-6)

  @pytest.mark.parametrize('advantage', [np.nan, np.inf])
  def test_no_advantage_outside_the_mask_counts(self, advantage):
    # The gradient is 0 · A = NaN there: the mask comes after the product.
    _, (gradient, _) = value_and_gradients(
      losses.policy_gradient_loss,
      [[-1.0, -2.0], [-3.0, -4.0]],
      [[2.0, -1.0], [advantage, 3.0]],
      mask=MASK,
    )
    assert gradient.numpy()[1, 0] == 0

  def test_without_a_step_it_is_zero(self):
    loss, (gradient, _) = value_and_gradients(
      losses.policy_gradient_loss,
      [[-1.0], [-2.0]],
      [[3.0], [4.0]],
      mask=[[False], [False]],
    )
    assert loss == 0
    assert np.all(gradient.numpy() == 0)

  @pytest.mark.parametrize('name', ['advantages', 'mask'])
  def test_wrong_shape_is_named(self, name):
    arguments = {
      'log_probs': tf.zeros([2, 3]),
      'advantages': tf.zeros([2, 3]),
      'mask': tf.ones([2, 3], tf.bool),
    }
    arguments[name] = arguments[name][:, :1]
    with pytest.raises(ValueError, match=f'^{name} must have shape'):
      losses.policy_gradient_loss(**arguments)

  def test_log_probs_with_an_axis_too_many_are_named(self):
    with pytest.raises(ValueError, match=r'^log_probs must have shape'):
      losses.policy_gradient_loss(
        tf.zeros([2, 3, 1]), tf.zeros([2, 3]), tf.ones([2, 3], tf.bool)
      )


class TestEntropyLoss:
  def test_by_hand(self):
    loss, (gradient,) = value_and_gradients(
      losses.entropy_loss, [[0.5, 1.0], [9.0, 0.25]], mask=MASK
    )
    np.testing.assert_allclose(loss, -(0.5 + 1 + 0.25) / 3, rtol=1e-6)
    # Negative: a smaller loss is a larger entropy.
    expected = [[-1 / 3, -1 / 3], [0, -1 / 3]]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)

  @pytest.mark.parametrize('size', SIZES)
  def test_equals_the_equation(self, size):
    random = np.random.default_rng(size[0])
    entropies = random.uniform(0, 2, size=size)
    mask = random.uniform(size=size) < 0.7
    loss, (gradient,) = value_and_gradients(
      losses.entropy_loss, entropies, mask=mask
    )
    np.testing.assert_allclose(
      loss, slow_entropy_loss(entropies, mask), rtol=1e-10
    )
    numeric = numeric_gradient(lambda x: slow_entropy_loss(x, mask), entropies)
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)
    assert np.all(gradient.numpy()[~mask] == 0)

  @pytest.mark.parametrize('bad', [np.nan, np.inf, 1e30])
  def test_nothing_outside_the_mask_counts(self, bad):
    loss, (gradient,) = value_and_gradients(
      losses.entropy_loss, [[0.5, 1.0], [bad, 0.25]], mask=MASK
    )
    np.testing.assert_allclose(loss, -1.75 / 3, rtol=1e-6)
    assert gradient.numpy()[1, 0] == 0

  def test_without_a_step_it_is_zero(self):
    loss, (gradient,) = value_and_gradients(
      losses.entropy_loss, [[np.nan], [1.0]], mask=[[False], [False]]
    )
    assert loss == 0
    assert np.all(gradient.numpy() == 0)

  def test_wrong_shape_is_named(self):
    with pytest.raises(ValueError, match=r'^mask must have shape'):
      losses.entropy_loss(tf.zeros([2, 3]), tf.ones([2, 1], tf.bool))
    with pytest.raises(ValueError, match=r'^entropies must have shape'):
      losses.entropy_loss(tf.zeros([2]), tf.ones([2], tf.bool))


class TestValueLoss:
  def test_by_hand(self):
    loss, (gradient, none) = value_and_gradients(
      losses.value_loss,
      [[1.0, 2.0], [3.0, 4.0]],
      [[3.0, -1.0], [50.0, 4.5]],
      mask=MASK,
    )
    # Errors of 2, −3 and ½.
    np.testing.assert_allclose(loss, (4 + 9 + 0.25) / 2 / 3, rtol=1e-6)
    expected = [[-2 / 3, 3 / 3], [0, -0.5 / 3]]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)
    assert none is None

  @pytest.mark.parametrize('size', SIZES)
  def test_equals_the_equation(self, size):
    random = np.random.default_rng(size[0])
    values, targets = random.normal(size=[2, *size])
    mask = random.uniform(size=size) < 0.7
    loss, (gradient, _) = value_and_gradients(
      losses.value_loss, values, targets, mask=mask
    )
    np.testing.assert_allclose(
      loss, slow_value_loss(values, targets, mask), rtol=1e-10
    )
    numeric = numeric_gradient(
      lambda x: slow_value_loss(x, targets, mask), values
    )
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)
    assert np.all(gradient.numpy()[~mask] == 0)

  @pytest.mark.parametrize(('value', 'target'), [(1e30, 0.0), (0.0, 1e30)])
  def test_nothing_outside_the_mask_counts(self, value, target):
    # The square of 1e30 is infinite.
    loss, (gradient, _) = value_and_gradients(
      losses.value_loss,
      [[1.0, 2.0], [value, 4.0]],
      [[3.0, -1.0], [target, 4.5]],
      mask=MASK,
    )
    np.testing.assert_allclose(loss, 13.25 / 6, rtol=1e-6)
    assert gradient.numpy()[1, 0] == 0

  @pytest.mark.parametrize(
    ('value', 'target'),
    [(1.0, np.nan), (1.0, np.inf), (np.inf, 1.0), (np.nan, 1.0)],
  )
  def test_no_error_outside_the_mask_counts(self, value, target):
    # The gradient is 0 · (v − V) = NaN there: the mask comes after the square.
    _, (gradient, _) = value_and_gradients(
      losses.value_loss,
      [[1.0, 2.0], [value, 4.0]],
      [[3.0, -1.0], [target, 4.5]],
      mask=MASK,
    )
    assert gradient.numpy()[1, 0] == 0

  def test_without_a_step_it_is_zero(self):
    loss, (gradient, _) = value_and_gradients(
      losses.value_loss,
      [[1.0], [2.0]],
      [[3.0], [4.0]],
      mask=[[False], [False]],
    )
    assert loss == 0
    assert np.all(gradient.numpy() == 0)

  @pytest.mark.parametrize('name', ['targets', 'mask'])
  def test_wrong_shape_is_named(self, name):
    arguments = {
      'values': tf.zeros([2, 3]),
      'targets': tf.zeros([2, 3]),
      'mask': tf.ones([2, 3], tf.bool),
    }
    arguments[name] = arguments[name][:, :1]
    with pytest.raises(ValueError, match=f'^{name} must have shape'):
      losses.value_loss(**arguments)


class TestCompiled:
  @pytest.mark.parametrize(
    ('name', 'num_inputs'),
    [('policy_gradient_loss', 2), ('entropy_loss', 1), ('value_loss', 2)],
  )
  def test_compiled_equals_eager(self, name, num_inputs):
    random = np.random.default_rng(0)
    inputs = random.normal(size=[num_inputs, 20, 3])
    mask = random.uniform(size=[20, 3]) < 0.6
    loss = getattr(losses, name)
    eager, gradients = value_and_gradients(loss, *inputs, mask=mask)
    compiled, compiled_gradients = value_and_gradients(
      tf.function(loss, jit_compile=True, autograph=False), *inputs, mask=mask
    )
    np.testing.assert_allclose(compiled, eager, rtol=1e-12)
    np.testing.assert_allclose(
      compiled_gradients[0], gradients[0], rtol=1e-12, atol=1e-15
    )
    assert compiled_gradients[1:] == [None] * (num_inputs - 1)
