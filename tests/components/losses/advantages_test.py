"""Tests of `components/losses/advantages.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


def slow_advantages(rewards, discounts, values, bootstrap_value, mask, lambda_):
  """Equation 16 as a sum over steps, up to the end of the mask."""
  length, batch = rewards.shape
  v = np.concatenate([values, bootstrap_value[None]])
  advantages = np.zeros([length, batch])
  for s, b in np.ndindex(length, batch):
    for t in range(s, length):
      if not mask[t, b]:
        break
      delta = rewards[t, b] + discounts[t, b] * v[t + 1, b] - v[t, b]
      product = 1.0
      for i in range(s, t):
        product *= lambda_ * discounts[i, b]
      advantages[s, b] += product * delta
  return losses.Advantages(advantages, advantages + values)


def random_arguments(length, batch, seed=0, masked=0.25):
  """Returns a batch with some terminal and some masked steps."""
  random = np.random.default_rng([seed, length, batch])
  size = [length, batch]
  return {
    'rewards': random.normal(size=size),
    'discounts': random.choice([0.0, 0.6, 0.99], size, p=[0.1, 0.45, 0.45]),
    'values': random.normal(size=size),
    'bootstrap_value': random.normal(size=batch),
    'mask': random.uniform(size=size) >= masked,
  }


def advantages_of(lambda_=0.9, **arguments):
  tensors = {name: tf.constant(value) for name, value in arguments.items()}
  outputs = losses.generalized_advantages(**tensors, lambda_=lambda_)
  return losses.Advantages(*(output.numpy() for output in outputs))


def one_sequence(**changes):
  """Three steps with γ = ½."""
  arguments = {
    'rewards': np.array([[1.0], [2.0], [3.0]]),
    'discounts': np.array([[0.5], [0.5], [0.5]]),
    'values': np.array([[2.0], [4.0], [6.0]]),
    'bootstrap_value': np.array([8.0]),
    'mask': np.array([[True], [True], [True]]),
  }
  return {**arguments, **changes}


class TestByHand:
  # Errors: 1 + ½·4 − 2 = 1, 2 + ½·6 − 4 = 1, 3 + ½·8 − 6 = 1; λγ = ¼.
  @pytest.mark.parametrize(
    ('changes', 'expected'),
    [
      pytest.param({}, [1 + 0.25 * 1.25, 1 + 0.25, 1], id='mid_episode'),
      # The second error is 2 − 4, and nothing of the third is propagated.
      pytest.param(
        {'discounts': np.array([[0.5], [0.0], [0.5]])},
        [1 + 0.25 * -2, -2, 1],
        id='the_second_step_terminates',
      ),
      # Positive discounts at the end of the episode: truncation. The first step
      # bootstraps from V(x_1), where the episode ended.
      pytest.param(
        {'mask': np.array([[True], [False], [True]])},
        [1, 0, 1],
        id='the_second_step_never_happened',
      ),
      pytest.param(
        {'mask': np.array([[True], [True], [False]])},
        [1 + 0.25, 1, 0],
        id='the_sequence_is_shorter',
      ),
    ],
  )
  def test_advantages(self, changes, expected):
    arguments = one_sequence(**changes)
    outputs = advantages_of(0.5, **arguments)
    np.testing.assert_allclose(outputs.advantages[:, 0], expected)
    np.testing.assert_allclose(
      outputs.targets[:, 0], expected + arguments['values'][:, 0]
    )


class TestAdvantages:
  @pytest.mark.parametrize('length', [1, 2, 7, 32])
  @pytest.mark.parametrize('batch', [1, 3])
  @pytest.mark.parametrize('lambda_', [0.0, 0.8, 1.0])
  def test_equals_the_equation(self, length, batch, lambda_):
    for seed in range(3):
      arguments = random_arguments(length, batch, seed)
      actual = advantages_of(lambda_, **arguments)
      expected = slow_advantages(**arguments, lambda_=lambda_)
      np.testing.assert_allclose(actual.advantages, expected[0], atol=1e-12)
      np.testing.assert_allclose(actual.targets, expected[1], atol=1e-12)

  def test_is_vtrace_on_policy(self):
    arguments = random_arguments(20, 3)
    actual = advantages_of(0.8, **arguments)
    tensors = {name: tf.constant(value) for name, value in arguments.items()}
    zeros = tf.zeros([20, 3], tf.float64)
    trace = losses.vtrace(zeros, zeros, **tensors, lambda_=0.8)
    np.testing.assert_allclose(actual.targets, trace.targets, atol=1e-12)

  @pytest.mark.parametrize(
    'last_discount',
    [pytest.param(1.0, id='truncated'), pytest.param(0.0, id='terminated')],
  )
  def test_three_episodes_are_as_each_by_itself(self, last_discount):
    # Steps 0 to 4, 6 to 11 and 13 to 19; 5 and 12 lead to the next episode.
    arguments = random_arguments(20, 2, masked=0)
    arguments['discounts'][:] = 0.95
    for last in (4, 11):
      arguments['discounts'][last] = last_discount
      arguments['mask'][last + 1] = False
    whole = advantages_of(**arguments)
    values = np.concatenate(
      [arguments['values'], arguments['bootstrap_value'][None]]
    )
    for start, end in [(0, 5), (6, 12), (13, 20)]:
      part = {name: value[start:end] for name, value in arguments.items()}
      part['bootstrap_value'] = values[end]
      for actual, expected in zip(whole, advantages_of(**part)):
        np.testing.assert_allclose(actual[start:end], expected, atol=1e-12)

  @pytest.mark.parametrize('spoil', [np.nan, np.inf, 1e30])
  def test_padding_has_no_effect(self, spoil):
    arguments = random_arguments(20, 3, masked=0)
    arguments['mask'][15:, 1:] = False
    before = advantages_of(**arguments)
    mask = arguments['mask']
    for name in ('rewards', 'discounts'):
      arguments[name][~mask] = spoil
    arguments['values'][16:, 1:] = spoil  # The 15th is bootstrapped from.
    after = advantages_of(**arguments)
    np.testing.assert_array_equal(before.advantages, after.advantages)
    np.testing.assert_array_equal(before.targets[mask], after.targets[mask])

  def test_no_gradient_flows(self):
    arguments = random_arguments(5, 2)
    mask = tf.constant(arguments.pop('mask'))
    variables = {name: tf.Variable(x) for name, x in arguments.items()}
    with tf.GradientTape() as tape:
      outputs = losses.generalized_advantages(
        **variables, mask=mask, lambda_=0.9
      )
      loss = tf.reduce_sum(outputs.advantages + outputs.targets)
    assert tape.gradient(loss, list(variables.values())) == [None] * 4

  @pytest.mark.parametrize('name', ['discounts', 'values', 'mask'])
  @pytest.mark.parametrize('size', [(4, 2), (5, 1), (2,)])
  def test_wrong_shape_is_named(self, name, size):
    arguments = random_arguments(5, 2)
    arguments[name] = np.zeros(size, arguments[name].dtype)
    with pytest.raises(ValueError, match=f'^{name} must have shape'):
      advantages_of(**arguments)

  def test_takes_arrays(self):
    arguments = random_arguments(5, 2)
    outputs = losses.generalized_advantages(**arguments, lambda_=0.9)
    for found, expected in zip(outputs, advantages_of(0.9, **arguments)):
      np.testing.assert_allclose(found, expected, rtol=1e-12)

  def test_wrong_bootstrap_value_and_lambda_are_named(self):
    arguments = random_arguments(5, 2)
    with pytest.raises(ValueError, match=r'^lambda_ must be in'):
      advantages_of(1.1, **arguments)
    arguments['bootstrap_value'] = np.zeros([1])
    with pytest.raises(ValueError, match=r'^bootstrap_value must have'):
      advantages_of(**arguments)
