"""Tests of `agents/dqn/return_distributions.py`."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents.dqn import return_distributions as rd

B, A = 4, 3


def constant(values):
  return tf.constant(values, tf.float32)


class _Scripted:
  """Returns given numbers."""

  def __init__(self, *arrays):
    self._arrays = list(arrays)

  def uniforms(self, shape):
    array = self._arrays.pop(0)
    assert list(array.shape) == [int(size) for size in shape]
    return constant(array)


def transitions(seed=0):
  random = np.random.default_rng(seed)
  return constant(random.normal(size=B)), constant(random.uniform(size=B))


def draw(*shape, seed=0):
  return np.random.default_rng(seed).normal(size=shape)


class TestBootstraps:
  def test_greedy_takes_the_outputs_of_the_best_action(self):
    outputs, q = draw(B, A, 5), draw(B, A, seed=1)
    found = rd.greedy_bootstrap(constant(outputs), constant(q))
    for b in range(B):
      np.testing.assert_allclose(
        found.outputs[b], [outputs[b, np.argmax(q[b])]], rtol=1e-6
      )
    np.testing.assert_array_equal(found.weights, np.ones([B, 1]))
    np.testing.assert_array_equal(found.bonuses, np.zeros([B, 1]))

  def test_soft_weighs_all_actions(self):
    # π = (1/4, 3/4) at τ = 2.
    outputs, q = draw(1, 2, 5), [[0, 2 * math.log(3)]]
    found = rd.soft_bootstrap(constant(outputs), constant(q), 2.0)
    np.testing.assert_allclose(found.outputs, outputs, rtol=1e-6)
    np.testing.assert_allclose(found.weights, [[1 / 4, 3 / 4]], rtol=1e-6)
    np.testing.assert_allclose(
      found.bonuses, [[2 * math.log(4), 2 * math.log(4 / 3)]], rtol=1e-6
    )


@pytest.mark.parametrize(
  ('returns', 'wrong', 'rank'),
  [
    (rd.ExpectedReturn(1.0), [B, A, 5], 2),
    (rd.CategoricalReturn(-1.0, 1.0, 5), [B, A], 3),
    (rd.QuantileReturn(5, 1.0), [B, A], 3),
  ],
)
def test_values_refuse_outputs_of_another_kind(returns, wrong, rank):
  with pytest.raises(ValueError, match=f'outputs must have rank {rank}'):
    returns.values(tf.zeros(wrong))


def slow_errors(q_tm1, a_tm1, r_t, discount_t, q_t_value, q_t_selector):
  """r + γ q_value(s', argmax_a q_selector(s', a)) − q(s, a), row by row.

  Double Q-learning, https://arxiv.org/abs/1509.06461, equation 4.
  """
  errors = []
  for b in range(len(r_t)):
    best = max(
      range(len(q_t_selector[b])), key=lambda a, b=b: q_t_selector[b][a]
    )
    target = r_t[b] + discount_t[b] * q_t_value[b][best]
    errors.append(target - q_tm1[b][a_tm1[b]])
  return np.array(errors)


def slow_huber(errors, threshold):
  """½ x² if |x| ≤ κ, else κ (|x| − ½ κ)."""
  size = np.abs(errors)
  linear = threshold * (size - 0.5 * threshold)
  return np.where(size <= threshold, 0.5 * size**2, linear)


def compare(returns, q_tm1, a_tm1, r_t, discount_t, q_t_value, q_t_selector):
  return returns.compare(
    tf.gather(q_tm1, a_tm1, batch_dims=1), None, r_t, discount_t,
    rd.greedy_bootstrap(q_t_value, q_t_selector),
  )  # fmt: skip


class TestExpectedReturn:
  returns = rd.ExpectedReturn(huber_threshold=0.7)

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
      # Rewards and values keep their signs.
      pytest.param(
        {'r_t': [-3.0], 'q_t_value': [[-1.0, -6.0, -2.0]]},
        -3 + 0.5 * -6 - 2,
        id='negative',
      ),
    ],
  )
  def test_error(self, changes, expected):
    arguments = {
      'r_t': [1.0],
      'discount_t': [0.5],
      'q_t_value': [[9.0, 4.0, 3.0]],
      'q_t_selector': [[0.0, 8.0, 6.0]],
      **changes,
    }
    tensors = {name: constant(value) for name, value in arguments.items()}
    found = compare(self.returns, constant([[2, 7, 5]]), [0], **tensors)
    np.testing.assert_allclose(found.errors, [expected], rtol=1e-6)

  def test_greedy_is_double_q_learning(self):
    random = np.random.default_rng(0)
    arguments = {
      'q_tm1': draw(7, A),
      'a_tm1': random.integers(A, size=7),
      'r_t': random.normal(size=7),
      'discount_t': random.choice([0.0, 0.5, 1.0], size=7),
      'q_t_value': draw(7, A, seed=1),
      'q_t_selector': draw(7, A, seed=2),
    }
    tensors = {name: tf.constant(value) for name, value in arguments.items()}
    found = compare(self.returns, **tensors)
    expected = slow_errors(**arguments)
    assert {abs(error) > 0.7 for error in expected} == {True, False}
    np.testing.assert_allclose(found.errors, expected)
    np.testing.assert_allclose(found.priorities, np.abs(expected))
    np.testing.assert_allclose(found.losses, slow_huber(expected, 0.7))

  def test_gradient_flows_into_the_acting_value_alone(self):
    q_tm1 = tf.Variable([[2.0, 7.0, 5.0], [1.0, 3.0, 2.0]])
    others = [
      tf.Variable([1.0, 2.0]),
      tf.Variable([0.5, 0.5]),
      tf.Variable([[9.0, 4.0, 3.0], [1.0, 2.0, 3.0]]),
      tf.Variable([[0.0, 8.0, 6.0], [5.0, 4.0, 3.0]]),
    ]
    with tf.GradientTape() as tape:
      found = compare(self.returns, q_tm1, [0, 2], *others)
      # Errors: 1 + ½·4 − 2 = 1 and 2 + ½·1 − 2 = ½.
      loss = tf.reduce_sum(found.losses)
    gradients = tape.gradient(loss, [q_tm1, *others])
    # −e, but at most κ, at the actions taken; 0 elsewhere.
    np.testing.assert_allclose(
      tf.convert_to_tensor(gradients[0]), [[-0.7, 0, 0], [0, 0, -0.5]]
    )
    assert gradients[1:] == [None] * 4

  def test_refuses_outputs_of_a_distribution(self):
    outputs = tf.zeros([B, A, 5])
    with pytest.raises(ValueError, match='outputs_tm1 must have rank 1'):
      self.returns.compare(
        outputs[:, 0], None, *transitions(),
        rd.greedy_bootstrap(outputs, tf.zeros([B, A])),
      )  # fmt: skip


class TestCategoricalReturn:
  def test_by_hand(self):
    returns = rd.CategoricalReturn(-1.0, 3.0, 3)  # −1, 1, 3
    outputs = constant(np.log([[[1, 1, 2], [2, 1, 1]]]))
    np.testing.assert_allclose(returns.values(outputs), [[1.5, 0.5]], rtol=1e-6)
    found = returns.compare(
      outputs[:, 0], None, constant([1]), constant([0.5]),
      rd.greedy_bootstrap(outputs, constant([[0, 1]])),
    )  # fmt: skip
    # 1 + ½ · {−1, 1, 3} with probabilities ½, ¼ and ¼: the first is a quarter
    # on −1, the others share between 1 and 3.
    target = [
      0.5 * 0.25,
      0.5 * 0.75 + 0.25 * 0.75 + 0.25 * 0.25,
      0.25 * 0.25 + 0.25 * 0.75,
    ]
    divergence = sum(p * math.log(p / q) for p, q in zip(target, [1, 1, 2]))
    divergence += math.log(4)
    np.testing.assert_allclose(found.losses, [divergence], rtol=1e-5)
    np.testing.assert_allclose(found.priorities, [divergence], rtol=1e-5)
    np.testing.assert_allclose(found.errors, [1 + 0.5 * 0.5 - 1.5], rtol=1e-5)
    at_ends = float(found.metrics['share_at_ends'])
    assert at_ends == pytest.approx(target[0] + target[2], rel=1e-5)

  def test_priorities_are_never_below_zero(self):
    returns = rd.CategoricalReturn(-1.0, 1.0, 51)
    outputs = constant(draw(200, 1, 51))
    found = returns.compare(
      outputs[:, 0], None, tf.zeros([200]), tf.ones([200]),
      rd.greedy_bootstrap(outputs, tf.zeros([200, 1])),
    )  # fmt: skip
    assert np.min(found.losses) < 0  # By rounding.
    assert np.min(found.priorities) == 0


class TestQuantileReturn:
  returns = rd.QuantileReturn(4, huber_threshold=0.7)

  def test_values_are_means(self):
    outputs = draw(B, A, 4)
    np.testing.assert_allclose(
      self.returns.values(constant(outputs)), outputs.mean(axis=2), rtol=1e-4
    )


class TestImplicitQuantileReturn:
  returns = rd.ImplicitQuantileReturn(
    num_taus=2, num_target_taus=3, num_policy_taus=4, huber_threshold=0.7
  )

  def test_taus(self):
    midpoints = np.tile([1 / 8, 3 / 8, 5 / 8, 7 / 8], [B, 1])
    drawn = np.random.default_rng(0).uniform(size=(B, 3))
    np.testing.assert_allclose(self.returns.policy_taus(B), midpoints)
    np.testing.assert_allclose(
      self.returns.sample_taus(_Scripted(drawn[:, :2]), B), drawn[:, :2]
    )
    np.testing.assert_allclose(
      self.returns.target_taus(_Scripted(drawn), B),
      np.concatenate([midpoints, drawn], axis=1),
      rtol=1e-6,
    )

  def test_values_of_a_target_are_of_the_policys_taus(self):
    outputs = draw(B, A, 4 + 3)
    values, drawn = self.returns.read_target(constant(outputs))
    np.testing.assert_allclose(
      values, outputs[..., :4].mean(axis=2), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(drawn, outputs[..., 4:], rtol=1e-6)
