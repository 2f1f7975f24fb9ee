"""Tests of `categorical_mixture_targets` of `components/losses`."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


def constant(values):
  return tf.constant(values, tf.float32)


def slow_targets(z, r_t, discount_t, logits_t, weights_t, bonuses_t):
  """Shares each probability of each action among two atoms, of one row."""
  spacing, result = z[1] - z[0], np.zeros(len(z))
  for of_action, weight, bonus in zip(logits_t, weights_t, bonuses_t):
    powers = np.exp(of_action)
    for atom, p in zip(z, powers / powers.sum()):
      moved = min(max(r_t + discount_t * (atom + bonus), z[0]), z[-1])
      place = (moved - z[0]) / spacing
      lower = min(math.floor(place), len(z) - 2)
      result[lower] += weight * p * (lower + 1 - place)
      result[lower + 1] += weight * p * (place - lower)
  return result


def random_arguments(num_actions=3, num_atoms=7):
  random = np.random.default_rng(0)
  weights = random.uniform(size=(5, num_actions))
  return {
    'r_t': random.normal(size=5),
    'discount_t': random.uniform(size=5),
    'logits_t': random.normal(size=(5, num_actions, num_atoms)),
    'weights_t': weights / weights.sum(axis=1, keepdims=True),
    'bonuses_t': random.uniform(0, 2, size=(5, num_actions)),
    'z': np.linspace(-2, 3, num_atoms),
  }


def test_equals_the_loop():
  arguments = random_arguments()
  found = losses.categorical_mixture_targets(
    **{name: constant(value) for name, value in arguments.items()}
  )
  z = arguments.pop('z')
  expected = [
    slow_targets(z, **{name: array[b] for name, array in arguments.items()})
    for b in range(5)
  ]
  np.testing.assert_allclose(found, expected, atol=1e-5)


def test_one_action_is_the_usual_target():
  arguments = {
    name: constant(value)
    for name, value in random_arguments(num_actions=1).items()
  }
  arguments['weights_t'] = tf.ones([5, 1])
  arguments['bonuses_t'] = tf.zeros([5, 1])
  found = losses.categorical_mixture_targets(**arguments)
  expected = losses.categorical_td_targets(
    arguments['r_t'],
    arguments['discount_t'],
    arguments['logits_t'][:, 0],
    arguments['z'],
  )
  np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
  'name', ['r_t', 'discount_t', 'logits_t', 'weights_t', 'bonuses_t', 'z']
)
def test_refuses_shapes(name):
  arguments = {
    name: constant(value) for name, value in random_arguments().items()
  }
  arguments[name] = arguments[name][None]
  with pytest.raises(ValueError, match=f'{name} must have rank'):
    losses.categorical_mixture_targets(**arguments)
