"""Tests of `components/losses/advantages.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


def slow_vtrace(
  target_log_probs,
  behavior_log_probs,
  rewards,
  discounts,
  values,
  bootstrap_value,
  mask,
  max_rho=1.0,
  max_pg_rho=1.0,
  max_c=1.0,
  lambda_=1.0,
):
  """Equation 1, close to the notation; sums end with the mask."""
  length, batch = rewards.shape
  v = np.concatenate([values, bootstrap_value[None]])  # V(x_0) … V(x_T)
  ratios = np.where(mask, np.exp(target_log_probs - behavior_log_probs), 0)
  targets = v.copy()  # v_T = V(x_T)
  gains = np.zeros([length, batch])
  for s, b in np.ndindex(length, batch):
    product = 1.0
    for t in range(s, length):
      if not mask[t, b]:
        break
      rho = min(max_rho, ratios[t, b])
      delta = rewards[t, b] + discounts[t, b] * v[t + 1, b] - v[t, b]
      targets[s, b] += product * rho * delta
      product *= discounts[t, b] * lambda_ * min(max_c, ratios[t, b])
  for s, b in np.ndindex(length, batch):
    if mask[s, b]:
      q = rewards[s, b] + discounts[s, b] * targets[s + 1, b]
      gains[s, b] = min(max_pg_rho, ratios[s, b]) * (q - v[s, b])
  return losses.VTrace(targets[:-1], gains, ratios)


def random_arguments(length, batch, masked=0.25):
  """Returns a batch with some terminal and some masked steps."""
  random = np.random.default_rng([length, batch])
  size = [length, batch]
  return {
    'target_log_probs': random.normal(-1, 0.7, size=size),
    'behavior_log_probs': random.normal(-1, 0.7, size=size),
    'rewards': random.normal(size=size),
    'discounts': random.choice(
      [0.0, 0.6, 0.99, 1.0], size, p=[0.1, *[0.3] * 3]
    ),
    'values': random.normal(size=size),
    'bootstrap_value': random.normal(size=batch),
    'mask': random.uniform(size=size) >= masked,
  }


def vtrace_of(**arguments):
  tensors = {
    name: tf.constant(value) if isinstance(value, np.ndarray) else value
    for name, value in arguments.items()
  }
  return losses.VTrace(*(x.numpy() for x in losses.vtrace(**tensors)))


def assert_alike(actual, expected, **tolerances):
  for name, x, y in zip(losses.VTrace._fields, actual, expected):
    np.testing.assert_allclose(x, y, err_msg=name, **tolerances)


class TestVTrace:
  @pytest.mark.parametrize(
    'options',
    [
      {},
      {'max_rho': 2.0, 'max_pg_rho': 0.7, 'max_c': 1.3, 'lambda_': 0.9},
      {'lambda_': 0.0},
    ],
  )
  def test_equals_the_equation(self, options):
    arguments = {**random_arguments(20, 4), **options}
    assert_alike(
      vtrace_of(**arguments), slow_vtrace(**arguments), rtol=1e-9, atol=1e-10
    )

  @pytest.mark.parametrize(
    ('log_probs', 'reward', 'value', 'discount'),
    [
      pytest.param((1e4, 0.0), 1e30, -1e30, 1e30, id='infinite_ratios'),
      pytest.param((np.inf, -np.inf), np.nan, np.nan, np.nan, id='nan'),
    ],
  )
  def test_padding_has_no_effect(self, log_probs, reward, value, discount):
    arguments = random_arguments(20, 3, masked=0)
    # Two steps of padding in the middle, and at the end, of all but the first.
    mask = arguments['mask']
    mask[5:7] = mask[15:, 1:] = False
    before = vtrace_of(**arguments)
    arguments['target_log_probs'][~mask] = log_probs[0]
    arguments['behavior_log_probs'][~mask] = log_probs[1]
    arguments['rewards'][~mask] = reward
    arguments['discounts'][~mask] = discount
    # The value of where a masked step begins counts if a step leads there.
    led_to = np.concatenate([np.zeros([1, 3], bool), mask[:-1]])
    arguments['values'][~mask & ~led_to] = value
    arguments['bootstrap_value'][1:] = value
    after = vtrace_of(**arguments)
    assert_alike([x[mask] for x in after], [x[mask] for x in before])
    np.testing.assert_array_equal(after.advantages[~mask], 0)
    np.testing.assert_array_equal(after.ratios[~mask], 0)


class TestGeneralizedAdvantages:
  def test_are_those_of_vtrace_on_policy(self):
    arguments = random_arguments(20, 3)
    del arguments['target_log_probs'], arguments['behavior_log_probs']
    tensors = {name: tf.constant(value) for name, value in arguments.items()}
    found = losses.generalized_advantages(**tensors, lambda_=0.8)
    zeros = tf.zeros([20, 3], tf.float64)
    trace = losses.vtrace(zeros, zeros, **tensors, lambda_=0.8)
    np.testing.assert_allclose(found.targets, trace.targets, atol=1e-12)
    np.testing.assert_allclose(
      found.advantages, found.targets - arguments['values'], atol=1e-12
    )
