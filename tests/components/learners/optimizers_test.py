"""Tests of `components/learners/optimizers.py`."""

import numpy as np
import sonnet as snt
import tensorflow as tf

from repertory.components import learners

_RATE, _EPSILON = 0.1, 0.5


class TestClippedAdam:
  def test_steps_are_those_of_sonnet(self):
    ours, theirs = (
      [tf.Variable(tf.ones([2, 3])), tf.Variable(2.0), tf.Variable([1.0])]
      for _ in range(2)
    )
    rate = tf.Variable(0.1)
    optimizer = learners.ClippedAdam(ours, rate, _EPSILON)
    adam = snt.optimizers.Adam(rate, epsilon=_EPSILON)
    random = np.random.default_rng(0)

    @tf.function(autograph=False, jit_compile=True)
    def step(gradients):
      with tf.GradientTape() as tape:
        # The loss does not depend on the last variable.
        loss = sum(tf.reduce_sum(v * g) for v, g in zip(ours[:2], gradients))
      return optimizer.minimize(tape, loss)

    for i in range(8):
      gradients = [
        tf.constant(
          random.normal(size=v.shape) * 10.0 ** (i % 4 - 2), tf.float32
        )
        for v in ours[:2]
      ]
      rate.assign(0.1 / (i + 1))
      norm = step(gradients)
      squares = sum(np.sum(np.square(g)) for g in gradients)
      np.testing.assert_allclose(norm, np.sqrt(squares), rtol=1e-5)
      adam.apply([*gradients, None], theirs)
      for one, other in zip(ours, theirs):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(ours[2], [1.0])

  def test_large_gradients_are_scaled_down_together(self):
    variables = [tf.Variable(0.0), tf.Variable(0.0)]
    # With such a large ε, a first step is α / ε times the gradient.
    optimizer = learners.ClippedAdam(variables, 1e6, 1e6, max_norm=1.0)
    with tf.GradientTape() as tape:
      loss = 3 * variables[0] + 4 * variables[1]
    assert optimizer.minimize(tape, loss) == 5
    np.testing.assert_allclose(variables, [-0.6, -0.8], rtol=1e-5)

  def test_rows_of_a_table_that_were_not_looked_up_have_gradient_0(self):
    table = tf.Variable(tf.zeros([3, 2]))
    optimizer = learners.ClippedAdam([table], 0.1)
    for row in (2, 0):
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, [row]))
      optimizer.minimize(tape, loss)
    # The second step of row 2 comes from its moments.
    second = 0.1 * (0.09 / 0.19) / np.sqrt(0.000999 / 0.001999)
    first = 0.1 * (0.1 / 0.19) / np.sqrt(0.001 / 0.001999)
    expected = np.repeat([[-first], [0.0], [-0.1 - second]], 2, axis=1)
    np.testing.assert_allclose(table, expected, rtol=1e-4)


def _amsgrad_twin(gradients):
  """Algorithm 2 of the paper, with Adam's corrections."""
  x = m = v = v_max = np.zeros(gradients[0].shape)
  for t, g in enumerate(gradients, start=1):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    v_max = np.maximum(v_max, v)
    m_hat, v_hat = m / (1 - 0.9**t), v_max / (1 - 0.999**t)
    x = x - _RATE * m_hat / (np.sqrt(v_hat) + _EPSILON)
    yield x


class TestAMSGrad:
  def test_equals_the_twin_where_gradients_fade_and_grow(self):
    random = np.random.default_rng(0)
    scales = np.repeat([1.0, 0.01, 5.0], 10)[:, None, None]
    gradients = (scales * random.normal(size=[30, 2, 3])).astype(np.float32)
    used, unused = tf.Variable(tf.zeros([2, 3])), tf.Variable(3.0)
    optimizer = learners.ClippedAdam(
      [used, unused], _RATE, _EPSILON, amsgrad=True
    )
    for gradient, expected in zip(gradients, _amsgrad_twin(gradients)):
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(used * gradient)
      optimizer.minimize(tape, loss)
      np.testing.assert_allclose(used, expected, rtol=1e-4, atol=1e-6)
    assert unused == 3
