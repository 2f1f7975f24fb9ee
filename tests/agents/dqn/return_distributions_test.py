"""Tests of `agents/dqn/return_distributions.py`."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents.dqn import return_distributions as rd

B, A = 4, 3


def constant(values):
  return tf.constant(values, tf.float32)


def transitions(seed=0):
  random = np.random.default_rng(seed)
  return constant(random.normal(size=B)), constant(random.uniform(size=B))


def draw(*shape, seed=0):
  return np.random.default_rng(seed).normal(size=shape)


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


class TestExpectedReturn:
  returns = rd.ExpectedReturn(huber_threshold=0.7)

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
