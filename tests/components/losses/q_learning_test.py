"""Tests of `components/losses/q_learning.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


def slow_errors(q_tm1, a_tm1, r_t, discount_t, q_t_value, q_t_selector):
  """r + γ q_value(s', argmax_a q_selector(s', a)) − q(s, a), row by row."""
  errors = []
  for b in range(len(r_t)):
    best = max(
      range(len(q_t_selector[b])), key=lambda a, b=b: q_t_selector[b][a]
    )
    target = r_t[b] + discount_t[b] * q_t_value[b][best]
    errors.append(target - q_tm1[b][a_tm1[b]])
  return np.array(errors)


def errors_of(**changes):
  arguments = {
    'q_tm1': [[2.0, 7.0, 5.0]],
    'a_tm1': [0],
    'r_t': [1.0],
    'discount_t': [0.5],
    'q_t_value': [[9.0, 4.0, 3.0]],
    'q_t_selector': [[0.0, 8.0, 6.0]],
  }
  arguments.update(changes)
  tensors = {
    name: tf.constant(value, tf.int32 if name == 'a_tm1' else tf.float32)
    for name, value in arguments.items()
  }
  return losses.double_q_errors(**tensors).numpy()


class TestDoubleQErrors:
  @pytest.mark.parametrize(
    ('changes', 'expected'),
    [
      # The selector picks action 1, which the value network rates 4, not 9
      # (plain Q-learning), 8 (the selector's own value) or 3.
      pytest.param({}, 1 + 0.5 * 4 - 2, id='double'),
      # With one network for both, the largest value counts.
      pytest.param(
        {'q_t_selector': [[9.0, 4.0, 3.0]]}, 1 + 0.5 * 9 - 2, id='single'
      ),
      # Nothing follows termination, so only the reward counts.
      pytest.param({'discount_t': [0.0]}, 1 - 2, id='termination'),
      # The action taken is read from the first state, not the best one.
      pytest.param({'a_tm1': [2]}, 1 + 0.5 * 4 - 5, id='other_action'),
      # Rewards and values keep their signs.
      pytest.param(
        {'r_t': [-3.0], 'q_t_value': [[-1.0, -6.0, -2.0]]},
        -3 + 0.5 * -6 - 2,
        id='negative',
      ),
      # γ is not applied a second time.
      pytest.param(
        {'discount_t': [0.9**3]},
        1 + 0.729 * 4 - 2,
        id='discount_is_taken_as_it_is',
      ),
    ],
  )
  def test_error(self, changes, expected):
    np.testing.assert_allclose(errors_of(**changes), [expected], rtol=1e-6)

  def test_rows_do_not_mix(self):
    random = np.random.default_rng(0)
    arguments = {
      'q_tm1': random.normal(size=[7, 3]),
      'a_tm1': random.integers(3, size=7),
      'r_t': random.normal(size=7),
      'discount_t': random.choice([0.0, 0.5, 1.0], size=7),
      'q_t_value': random.normal(size=[7, 3]),
      'q_t_selector': random.normal(size=[7, 3]),
    }
    np.testing.assert_allclose(
      errors_of(**arguments), slow_errors(**arguments), rtol=1e-5, atol=1e-6
    )

  @pytest.mark.parametrize(
    'dtype',
    [tf.uint8, tf.int8, tf.uint16, tf.int16, tf.int32, tf.uint32, tf.int64],
  )
  def test_takes_any_integer_action(self, dtype):
    errors = losses.double_q_errors(
      tf.constant([[2.0, 7.0]]),
      tf.constant([1], dtype),
      tf.constant([1.0]),
      tf.constant([0.0]),
      tf.zeros([1, 2]),
      tf.zeros([1, 2]),
    )
    assert errors.numpy().tolist() == [1 - 7]

  def test_gradient_flows_into_the_acting_value_alone(self):
    q_tm1 = tf.Variable([[2.0, 7.0, 5.0], [1.0, 3.0, 2.0]])
    r_t = tf.Variable([1.0, 2.0])
    discount_t = tf.Variable([0.5, 0.5])
    q_t_value = tf.Variable([[9.0, 4.0, 3.0], [1.0, 2.0, 3.0]])
    q_t_selector = tf.Variable([[0.0, 8.0, 6.0], [5.0, 4.0, 3.0]])
    a_tm1 = tf.constant([0, 2])
    with tf.GradientTape() as tape:
      errors = losses.double_q_errors(
        q_tm1, a_tm1, r_t, discount_t, q_t_value, q_t_selector
      )
      # Errors: 1 + ½·4 − 2 = 1 and 2 + ½·1 − 2 = ½.
      loss = tf.reduce_sum(0.5 * errors**2)
    gradients = tape.gradient(
      loss, [q_tm1, r_t, discount_t, q_t_value, q_t_selector]
    )
    # d(½e²)/dq = −e at the actions taken, 0 elsewhere.
    np.testing.assert_allclose(gradients[0], [[-1, 0, 0], [0, 0, -0.5]])
    assert gradients[1:] == [None] * 4

  def test_gradient_equals_differences_quotient(self):
    random = np.random.default_rng(1)
    q_tm1 = random.normal(size=[4, 3])
    rest = {
      'a_tm1': random.integers(3, size=4),
      'r_t': random.normal(size=4),
      'discount_t': random.uniform(size=4),
      'q_t_value': random.normal(size=[4, 3]),
      'q_t_selector': random.normal(size=[4, 3]),
    }
    variable = tf.Variable(q_tm1)
    with tf.GradientTape() as tape:
      errors = losses.double_q_errors(
        variable, **{name: tf.constant(value) for name, value in rest.items()}
      )
      loss = tf.reduce_sum(losses.huber(errors, 0.7))
    numeric = np.zeros_like(q_tm1)
    for index in np.ndindex(*q_tm1.shape):
      step = np.zeros_like(q_tm1)
      step[index] = 1e-6
      above, below = (
        slow_huber(slow_errors(q_tm1 + s * step, **rest), 0.7).sum()
        for s in (1, -1)
      )
      numeric[index] = (above - below) / 2e-6
    np.testing.assert_allclose(
      tape.gradient(loss, variable), numeric, atol=1e-6
    )

  @pytest.mark.parametrize(
    'changes',
    [
      {'q_tm1': [1.0, 2.0]},
      {'a_tm1': [[0]]},
      {'r_t': [[1.0]]},
      {'discount_t': 0.5},
      {'q_t_value': [[[9.0, 4.0, 3.0]]]},
      {'q_t_selector': [0.0, 8.0, 6.0]},
    ],
  )
  def test_wrong_rank_is_named(self, changes):
    (name,) = changes
    with pytest.raises(ValueError, match=f'^{name} must have rank [12], got'):
      errors_of(**changes)


def slow_huber(errors, threshold):
  """½ x² if |x| ≤ δ, else δ (|x| − ½ δ)."""
  return np.array(
    [
      0.5 * x**2
      if abs(x) <= threshold
      else threshold * (abs(x) - 0.5 * threshold)
      for x in errors
    ]
  )


class TestHuber:
  @pytest.mark.parametrize(
    ('error', 'threshold', 'expected'),
    [
      (0.0, 1.0, 0),
      (0.5, 1.0, 0.5 * 0.25),
      (-0.5, 1.0, 0.5 * 0.25),
      (1.0, 1.0, 0.5),
      (3.0, 1.0, 3 - 0.5),
      (-3.0, 1.0, 3 - 0.5),
      # Not ½ + (|x| − δ), which would be right for δ = 1 alone.
      (5.0, 2.0, 2 * (5 - 1)),
      (-1.0, 0.25, 0.25 * (1 - 0.125)),
    ],
  )
  def test_value(self, error, threshold, expected):
    loss = losses.huber(tf.constant([error]), threshold)
    np.testing.assert_allclose(loss, [expected], rtol=1e-6)

  @pytest.mark.parametrize('threshold', [0.25, 1.0, 2.0])
  def test_slope_is_the_error_clipped_at_the_threshold(self, threshold):
    errors = tf.Variable(np.linspace(-4, 4, 33))
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(losses.huber(errors, threshold))
    np.testing.assert_allclose(
      tape.gradient(loss, errors),
      np.clip(errors.numpy(), -threshold, threshold),
      atol=1e-12,
    )

  @pytest.mark.parametrize('threshold', [1.0, 1e4, 1e6, 1e8])
  def test_a_large_threshold_keeps_small_errors(self, threshold):
    # ½ κ² beside ½ x² has no digit of x left in single precision.
    errors = tf.constant([-3.0, -0.0266, 1e-3, 0.0266, 0.7, 3.0])
    with tf.GradientTape() as tape:
      tape.watch(errors)
      found = losses.huber(errors, threshold)
    double = errors.numpy().astype(np.float64)
    np.testing.assert_allclose(found, slow_huber(double, threshold), rtol=1e-6)
    np.testing.assert_allclose(
      tape.gradient(found, errors),
      np.clip(double, -threshold, threshold),
      rtol=1e-6,
    )

  def test_keeps_the_shape(self):
    errors = np.random.default_rng(0).normal(0, 2, size=[3, 4])
    loss = losses.huber(tf.constant(errors), 1.0)
    assert loss.shape == [3, 4]
    np.testing.assert_allclose(
      tf.reshape(loss, [-1]), slow_huber(errors.reshape(-1), 1.0)
    )


def slow_weights(probabilities, table_sizes, exponent):
  """w_i = (N_i P_i)^-β / max_j w_j."""
  raw = [(1 / (n * p)) ** exponent for n, p in zip(table_sizes, probabilities)]
  return np.array(raw) / max(raw)


class TestImportanceWeights:
  @pytest.mark.parametrize(
    ('exponent', 'expected'),
    [
      # N P = 2, 1 and ½: raw weights ½, 1 and 2, of which the largest is 2.
      pytest.param(1.0, [1 / 4, 1 / 2, 1], id='beta_1'),
      # Roots of the above.
      pytest.param(0.5, [1 / 2, 1 / 2**0.5, 1], id='beta_half'),
      pytest.param(0.0, [1, 1, 1], id='beta_0'),
    ],
  )
  def test_by_hand(self, exponent, expected):
    weights = losses.importance_weights(
      tf.constant([0.02, 0.01, 0.005], tf.float64),
      tf.constant([100, 100, 100], tf.int64),
      exponent,
    )
    assert weights.dtype == tf.float32
    np.testing.assert_allclose(weights, expected, rtol=1e-6)

  def test_table_size_counts(self):
    # N P = 1 and 4 with equal P: without N the weights would be equal.
    weights = losses.importance_weights(
      tf.constant([0.01, 0.01], tf.float64),
      tf.constant([100, 400], tf.int64),
      1.0,
    )
    np.testing.assert_allclose(weights, [1, 1 / 4], rtol=1e-6)

  @pytest.mark.parametrize('exponent', [0.0, 0.4, 1.0])
  def test_equals_the_equation(self, exponent):
    random = np.random.default_rng(3)
    probabilities = random.uniform(1e-9, 1e-2, size=64)
    table_sizes = random.integers(1, 10**6, size=64)
    weights = losses.importance_weights(
      tf.constant(probabilities), tf.constant(table_sizes), exponent
    ).numpy()
    np.testing.assert_allclose(
      weights, slow_weights(probabilities, table_sizes, exponent), rtol=1e-6
    )
    assert weights.max() == 1
    assert weights.min() > 0

  @pytest.mark.parametrize(
    ('probabilities', 'table_sizes', 'name'),
    [([[0.1]], [1], 'probabilities'), ([0.1], 1, 'table_sizes')],
  )
  def test_wrong_rank_is_named(self, probabilities, table_sizes, name):
    with pytest.raises(ValueError, match=f'^{name} must have rank 1, got'):
      losses.importance_weights(
        tf.constant(probabilities, tf.float64),
        tf.constant(table_sizes, tf.int64),
        0.5,
      )
