"""Tests of `components/learners/amsgrad.py`."""

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from repertory.components import learners
from repertory.components.learners import amsgrad

_RATE, _EPSILON = 0.1, 0.5


def _optimize(gradients, **settings):
  """Returns the variable's value after each step, from 0."""
  variable = tf.Variable(tf.zeros_like(gradients[0]))
  optimizer = learners.ClippedAdam(
    [variable], _RATE, _EPSILON, max_norm=None, **settings
  )
  values = []
  for gradient in gradients:
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(variable * gradient)
    optimizer.minimize(tape, loss)
    values.append(variable.numpy())
  return np.stack(values)


def _twin(gradients):
  """Algorithm 2 of the paper, with Adam's corrections, for scalars."""
  values = np.zeros(np.shape(gradients))
  for i in np.ndindex(np.shape(gradients)[1:]):
    x = m = v = v_max = 0.0
    for t, g in enumerate(np.asarray(gradients)[(slice(None), *i)], start=1):
      m = 0.9 * m + 0.1 * g
      v = 0.999 * v + 0.001 * g * g
      v_max = max(v_max, v)
      m_hat, v_hat = m / (1 - 0.9**t), v_max / (1 - 0.999**t)
      x -= _RATE * m_hat / (np.sqrt(v_hat) + _EPSILON)
      values[(t - 1, *i)] = x
  return values


def test_two_steps_by_hand():
  # Step 1: m = 0.2, v = 0.004; corrected 0.2 / 0.1 = 2 and 0.004 / 0.001 = 4.
  first = 0.1 * 2 / (2 + 0.5)
  # Step 2: m = 0.18, and v = 0.003996 is less than 0.004, which stays;
  # corrected 0.18 / 0.19 and 0.004 / 0.001999.
  second = 0.1 * (0.18 / 0.19) / (np.sqrt(0.004 / 0.001999) + 0.5)
  values = _optimize([np.float32(2), np.float32(0)], amsgrad=True)
  np.testing.assert_allclose(values, [-first, -first - second], rtol=1e-5)


@pytest.mark.parametrize('is_amsgrad', [False, True])
def test_variables_without_a_gradient_stay(is_amsgrad):
  used, unused = tf.Variable(0.0), tf.Variable(3.0)
  optimizer = learners.ClippedAdam(
    [used, unused], _RATE, _EPSILON, max_norm=1.0, amsgrad=is_amsgrad
  )
  with tf.GradientTape() as tape:
    loss = 2 * used
  assert optimizer.minimize(tape, loss) == 2
  assert used < 0
  assert unused == 3


def test_equals_the_twin_where_gradients_fade_and_grow():
  random = np.random.default_rng(0)
  scales = np.repeat([1.0, 0.1, 0.01, 5.0, 0.01], 20)[:, None, None]
  gradients = (scales * random.normal(size=[100, 2, 3])).astype(np.float32)
  values = _optimize(gradients, amsgrad=True)
  np.testing.assert_allclose(values, _twin(gradients), rtol=1e-4, atol=1e-6)
  # The premise: Adam moves elsewhere.
  assert np.abs(_optimize(gradients) - values).max() > 1e-4


@pytest.mark.parametrize('is_amsgrad', [False, True])
def test_steps_shrink_with_gradients(is_amsgrad):
  variable = tf.Variable([0.0])
  if is_amsgrad:
    optimizer = amsgrad.AMSGrad([variable], 1.0, 0.0)
  else:
    optimizer = snt.optimizers.Adam(1.0, epsilon=0.0)

  def step(gradient):
    optimizer.apply([tf.constant([gradient])], [variable])

  @tf.function(autograph=False)
  def take(number, gradient):
    tf.while_loop(
      lambda i: i < number, lambda i: (step(gradient), i + 1)[1:], [0]
    )

  step(1.0)  # Creates its variables.
  take(2_999, 1.0)
  take(9_000, 1e-3)
  before = variable.numpy()[0]
  step(1e-3)
  taken = before - variable.numpy()[0]
  if is_amsgrad:
    # v is still 1 − 0.999^3000 = 0.95.
    assert taken == pytest.approx(1e-3 / np.sqrt(0.95), rel=0.1)
  else:
    # v = 0.95 · 0.999^9000 + 1e-6 = 1.2e-4 by now.
    assert taken == pytest.approx(1e-3 / np.sqrt(1.2e-4), rel=0.1)


def test_resumes_from_its_variables():
  gradients = [np.float32([3, -1]), np.float32([0.1, 0]), np.float32([0, 0.2])]
  expected = _optimize(gradients, amsgrad=True)[-1]
  variables = [tf.Variable([0.0, 0.0]) for _ in range(2)]
  first, other = (amsgrad.AMSGrad([x], _RATE, _EPSILON) for x in variables)
  for gradient in gradients[:2]:
    first.apply([tf.constant(gradient)], variables[:1])
  for source, target in zip(first.variables, other.variables, strict=True):
    assert not source.trainable
    target.assign(source)
  variables[1].assign(variables[0])
  other.apply([tf.constant(gradients[2])], variables[1:])
  np.testing.assert_allclose(variables[1].numpy(), expected, rtol=1e-6)
