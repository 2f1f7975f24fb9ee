"""Tests of `components/losses/sequence_q_learning.py`."""

import decimal

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses

_EPSILON = 0.01


def _slow_returns(rewards, discounts, values, mask, n_step):
  """Σ_{i<k} (Π_{j<i} γ_{t+j}) r_{t+i} + (Π_{j<k} γ_{t+j}) V(x_{t+k}).

  k is the number of unpadded steps from t on, at most n.
  """
  returns = np.array(values[:-1])
  for t, b in np.ndindex(*rewards.shape):
    total, product, k = 0.0, 1.0, 0
    while k < n_step and t + k < len(rewards) and mask[t + k, b]:
      total += product * rewards[t + k, b]
      product *= discounts[t + k, b]
      k += 1
    returns[t, b] = total + product * values[t + k, b]
  return returns


def _slow_rescale(x, epsilon=_EPSILON):
  """sign(x) (√(|x| + 1) − 1) + ε x, in 60 digits."""
  with decimal.localcontext(decimal.Context(prec=60)):
    x, epsilon = decimal.Decimal(float(x)), decimal.Decimal(epsilon)
    sign = (x > 0) - (x < 0)
    return float(sign * ((abs(x) + 1).sqrt() - 1) + epsilon * x)


def _slow_inverse(x, epsilon=_EPSILON):
  """sign(x) (((√(1 + 4ε (|x| + 1 + ε)) − 1) / 2ε)² − 1), in 60 digits."""
  with decimal.localcontext(decimal.Context(prec=60)):
    x, epsilon = decimal.Decimal(float(x)), decimal.Decimal(epsilon)
    sign = (x > 0) - (x < 0)
    root = (1 + 4 * epsilon * (abs(x) + 1 + epsilon)).sqrt()
    return float(sign * (((root - 1) / (2 * epsilon)) ** 2 - 1))


def _slow_errors(q, actions, rewards, discounts, target_q, mask, n_step):
  """h(G_t) − q(x_t, a_t), G of h⁻¹(q_target(x, argmax_a q(x, a)))."""
  values = np.zeros(q.shape[:2])
  for t, b in np.ndindex(*values.shape):
    values[t, b] = _slow_inverse(target_q[t, b, np.argmax(q[t, b])])
  returns = _slow_returns(rewards, discounts, values, mask, n_step)
  errors = np.zeros(rewards.shape)
  for t, b in np.ndindex(*rewards.shape):
    if mask[t, b]:
      errors[t, b] = _slow_rescale(returns[t, b]) - q[t, b, actions[t, b]]
  return errors


def _errors(**arguments):
  tensors = {
    name: tf.constant(value) if isinstance(value, np.ndarray) else value
    for name, value in arguments.items()
  }
  return losses.sequence_double_q_errors(
    **tensors,
    transform=lambda x: losses.rescale(x, _EPSILON),
    inverse_transform=lambda x: losses.inverse_rescale(x, _EPSILON),
  )


def _random_arguments(length=20, batch=3):
  random = np.random.default_rng(length)
  size = [length, batch]
  return {
    'q': random.normal(0, 3, [length + 1, batch, 3]),
    'actions': random.integers(3, size=size, dtype=np.uint8),
    'rewards': random.normal(size=size),
    'discounts': random.choice(
      [0.0, 0.6, 0.99, 1.0], size, p=[0.1, *[0.3] * 3]
    ),
    'target_q': random.normal(0, 3, [length + 1, batch, 3]),
    'mask': random.uniform(size=size) < 0.85,
  }


@pytest.mark.parametrize(('length', 'n_step'), [(1, 1), (20, 5), (20, 40)])
def test_errors_equal_the_equation(length, n_step):
  arguments = _random_arguments(length)
  np.testing.assert_allclose(
    _errors(**arguments, n_step=n_step),
    _slow_errors(**arguments, n_step=n_step),
    atol=1e-9,
  )


def test_padding_has_no_effect():
  arguments = _random_arguments(10, 2)
  arguments['mask'] = np.arange(10)[:, None] < [6, 10]
  expected = _errors(**arguments, n_step=3)
  arguments['rewards'][6:, 0] = arguments['discounts'][6:, 0] = 1e30
  arguments['q'][7:, 0] = arguments['target_q'][7:, 0] = np.nan
  q = tf.constant(arguments.pop('q'))
  with tf.GradientTape() as tape:
    tape.watch(q)
    errors = _errors(q=q, **arguments, n_step=3)
  np.testing.assert_array_equal(errors, expected)
  # −1 for the value of each action taken.
  taken = np.eye(3)[arguments['actions']] * arguments['mask'][..., None]
  np.testing.assert_array_equal(tape.gradient(errors, q)[:-1], -taken)


# Errors of 1, −5 and 3, which do not happen to be sorted.
@pytest.mark.parametrize(
  ('mask', 'expected'),
  [
    ([True] * 3, 0.9 * 5 + 0.1 * (1 + 5 + 3) / 3),
    ([True, False, True], 0.9 * 3 + 0.1 * (1 + 3) / 2),
    ([False] * 3, 0),
  ],
)
def test_priorities(mask, expected):
  errors = np.where(mask, [1.0, -5.0, 3.0], np.nan)
  priorities = losses.sequence_priorities(
    tf.constant(errors[:, None]), tf.constant(mask)[:, None], 0.9
  )
  np.testing.assert_allclose(priorities, [expected])


class TestRescale:
  # Both signs, 16 decades, and 0.
  _SIZES = np.geomspace(1e-8, 1e8, 33)
  points = np.concatenate([-_SIZES[::-1], [0.0], _SIZES]).astype(np.float32)

  @pytest.mark.parametrize('epsilon', [1e-3, 1.0])
  def test_equals_the_published_formulas(self, epsilon):
    for fast, slow in (
      (losses.rescale, _slow_rescale),
      (losses.inverse_rescale, _slow_inverse),
    ):
      found = fast(tf.constant(self.points), epsilon)
      expected = [slow(point, epsilon) for point in self.points]
      np.testing.assert_allclose(found, expected, rtol=1e-6)

  def test_slopes(self):
    x = tf.constant([0.0, 3.0, -8.0])
    # h'(x) = 1 / (2 √(|x| + 1)) + ε, and one over it where h(x) came from.
    slopes = np.array([1 / 2, 1 / 4, 1 / 6]) + 0.01
    y = losses.rescale(x, 0.01)
    with tf.GradientTape(persistent=True) as tape:
      tape.watch([x, y])
      there = losses.rescale(x, 0.01)
      back = losses.inverse_rescale(y, 0.01)
    np.testing.assert_allclose(tape.gradient(there, x), slopes, rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(back, y), 1 / slopes, rtol=1e-5)
