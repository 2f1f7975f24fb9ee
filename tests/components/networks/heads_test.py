"""Tests of `components/networks/heads.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import networks


def mlp(x, variables):
  """ReLU between layers, none after the last; `variables` is b, w, b, w ..."""
  layers = list(zip(variables[::2], variables[1::2]))
  for i, (b, w) in enumerate(layers):
    x = x @ w + b
    if i < len(layers) - 1:
      x = np.maximum(x, 0)
  return x


class TestDuelingHead:
  def make(self, hidden_sizes):
    """A head with random biases too, its variables by stream, features."""
    random = np.random.default_rng(0)
    features = random.normal(size=[5, 6]).astype(np.float32)
    head = networks.DuelingHead(3, hidden_sizes)
    head(tf.constant(features))
    for variable in head.variables:
      variable.assign(random.normal(size=variable.shape))
    streams = {'value': [], 'advantage': []}
    for variable in sorted(head.variables, key=lambda v: v.name):
      _, stream, *_ = variable.name.split('/')
      streams[stream].append(variable.numpy())
    return head, streams, features

  @pytest.mark.parametrize('hidden_sizes', [(), (4, 7)])
  def test_equation(self, hidden_sizes):
    head, streams, features = self.make(hidden_sizes)
    value = mlp(features, streams['value'])
    advantage = mlp(features, streams['advantage'])
    assert value.shape == (5, 1)
    expected = np.zeros([5, 3])
    for b in range(5):
      for a in range(3):
        # q(s, a) = v(s) + A(s, a) − 1/|A| Σ_a' A(s, a'), equation 9.
        expected[b, a] = value[b, 0] + advantage[b, a] - advantage[b].sum() / 3
    np.testing.assert_allclose(head(features), expected, rtol=1e-4, atol=1e-5)


class TestGaussianHead:
  @pytest.mark.parametrize('scale', [0.05, 200.0])
  def test_begins_about_0_with_the_deviation(self, scale):
    head = networks.GaussianHead(3, scale)
    found = head(tf.constant(np.ones([2, 8]), tf.float32))
    assert found.shape == [2, 6]
    np.testing.assert_allclose(found[:, :3], np.zeros([2, 3]), atol=0.05)
    np.testing.assert_allclose(found[:, 3:], np.full([2, 3], scale), rtol=0.1)

  def test_deviations_are_positive(self):
    head = networks.GaussianHead(1, 0.5)
    head(tf.zeros([1, 1]))
    for variable in head.variables:
      variable.assign(tf.fill(variable.shape, -1e6))
    assert float(head(tf.ones([1, 1]))[0, 1]) == np.float32(1e-4)
