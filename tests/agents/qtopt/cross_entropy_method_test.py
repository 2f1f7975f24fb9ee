"""Tests of `agents/qtopt/cross_entropy_method.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents.qtopt import cross_entropy_method as cem


def slow_maximum(rate, noise, num_elites, initial_stddev):
  """The reference for one row, by sorting: the best action and its value."""
  mean, stddev = np.zeros(noise.shape[-1]), initial_stddev
  ranked = []
  for numbers in noise:
    samples = np.clip(mean + stddev * numbers, -1, 1)
    ranked = sorted(samples, key=rate, reverse=True)
    elites = np.array(ranked[:num_elites])
    mean, stddev = elites.mean(axis=0), elites.std(axis=0)
  return ranked[0], rate(ranked[0])


def test_equals_a_loop_over_rows():
  goals = np.array([[0.3, -0.4], [2.0, 0.1], [-0.7, 0.6]])
  noise = np.random.default_rng(0).normal(size=(3, 3, 20, 2))

  def rate(actions):
    away = actions - tf.constant(goals, tf.float32)[:, None]
    return -tf.reduce_sum(away**2, axis=-1)

  call = tf.function(
    lambda x: cem.maximize(rate, x, 4, 0.8),
    autograph=False,
  )
  found = call(tf.constant(noise, tf.float32))
  for b, goal in enumerate(goals):
    action, value = slow_maximum(
      lambda a, goal=goal: -np.sum((a - goal) ** 2), noise[:, b], 4, 0.8
    )
    np.testing.assert_allclose(found.action[b], action, atol=1e-5)
    np.testing.assert_allclose(found.value[b], value, atol=1e-5)


def test_no_gradient_flows():
  slope = tf.constant(2.0)
  with tf.GradientTape() as tape:
    tape.watch(slope)
    found = cem.maximize(
      lambda actions: slope * actions[..., 0],
      tf.constant(cem.fixed_noise(1, 8, 1)),
      2,
      1.0,
    )
  assert tape.gradient(found, slope) is None


@pytest.mark.parametrize('num_elites', [0, 9])
def test_refuses_elites(num_elites):
  with pytest.raises(ValueError, match=r'num_elites must be in \[1, 8\]'):
    cem.maximize(
      lambda actions: actions[..., 0],
      tf.constant(cem.fixed_noise(1, 8, 1)),
      num_elites,
      1.0,
    )
