"""Tests of action masks against loops over actions."""

import itertools
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import networks, policies, specs
from repertory.components.actions import action_masks, discrete_actions

_DIALS = specs.BoundedArray((2,), np.int64, [0, 1], [3, 3])  # 4 and 3 choices.
_GRIP = specs.DiscreteArray(2)
_NESTED = {'grip': _GRIP, 'dials': [_DIALS]}


def _find(actions, mask, **settings) -> Any:
  spec = specs.EnvironmentSpec(
    {'action_mask': mask, 'x': specs.Array((3,), np.float32)},
    actions,
    None,
    None,
  )
  return action_masks.find(spec, **settings)


def _bools(*shape):
  return specs.Array(shape, np.bool_)


def _draw(*shape):
  return np.random.default_rng(4).random(shape) < 0.6


def test_combinations_are_allowed_if_all_their_integers_are():
  masks = _find(_NESTED, {'grip': _bools(2), 'dials': [_bools(7)]})
  grip, dials = _draw(5, 6, 2), _draw(5, 6, 7)
  grip[..., 0] = dials[..., 1] = dials[..., 5] = True
  found = masks(
    {'action_mask': {'grip': tf.constant(grip), 'dials': [tf.constant(dials)]}}
  ).numpy()
  actions = discrete_actions.DiscreteActions(_NESTED)
  assert found.shape == (5, 6, actions.num_actions)
  for number in range(actions.num_actions):
    action = actions.to_action(np.array([number]))
    (first, second), hand = action['dials'][0][0], action['grip'][0]
    expected = grip[..., hand] & dials[..., first] & dials[..., 4 + second - 1]
    np.testing.assert_array_equal(found[..., number], expected)


def test_combinations_may_have_a_mask_of_their_own():
  masks = _find(_DIALS, _bools(4, 3))
  drawn = _draw(5, 4, 3)
  drawn[:, 0, 0] = True
  found = masks({'action_mask': tf.constant(drawn)}).numpy()
  actions = discrete_actions.DiscreteActions(_DIALS)
  for number in range(actions.num_actions):
    first, second = actions.to_action(np.array([number]))[0]
    np.testing.assert_array_equal(found[:, number], drawn[:, first, second - 1])


def test_choices_of_each_integer_follow_each_other():
  masks = _find(_DIALS, _bools(7), combined=False)
  drawn = _draw(50, 7)
  expected = drawn.copy()
  # An integer without a choice is unmasked.
  for part in (slice(0, 4), slice(4, 7)):
    expected[~drawn[:, part].any(1), part] = True
  assert not np.array_equal(expected, drawn)
  found = masks({'action_mask': tf.constant(drawn)})
  np.testing.assert_array_equal(found, expected)


def test_equal_integers_may_have_a_row_each():
  actions = specs.BoundedArray((2, 3), np.int32, 0, 3)
  rows, flat = (
    _find(actions, _bools(*shape), combined=False)
    for shape in ((2, 3, 4), (24,))
  )
  drawn = tf.constant(_draw(5, 2, 3, 4))
  np.testing.assert_array_equal(
    rows({'action_mask': drawn}),
    flat({'action_mask': tf.reshape(drawn, [5, 24])}),
  )


@pytest.mark.parametrize(
  ('actions', 'mask', 'settings', 'problem'),
  [
    (_GRIP, _bools(3), {}, r'shape \(2,\), got'),
    (_GRIP, specs.Array((2,), np.int32), {}, 'must be bools'),
    (_DIALS, _bools(4, 3), {'combined': False}, r'shape \(7,\), got'),
    (_DIALS, _bools(12), {}, r'shape \(7,\) or \(4, 3\), got'),
    (_NESTED, _bools(2), {}, 'must have the structure of the actions'),
    (specs.BoundedArray((1,), np.float32, 0, 1), _bools(1), {}, 'integers'),
  ],
)
def test_masks_fit_the_actions(actions, mask, settings, problem):
  with pytest.raises(ValueError, match=problem):
    _find(actions, mask, **settings)


def test_masked_actions_have_no_gradient_and_no_share_in_means():
  outputs = tf.constant([[1.0, 2.0, 6.0], [3.0, 4.0, 5.0]])
  mask = tf.constant([[True, False, True], [False, True, False]])
  with tf.GradientTape() as tape:
    tape.watch(outputs)
    masked = action_masks.apply(outputs, mask)
    policy = tf.nn.softmax(masked)
    loss = tf.reduce_sum(policy * outputs) + tf.reduce_sum(masked[0, :1])
  assert tape.gradient(loss, outputs).numpy()[1, 0] == 0
  assert policy.numpy()[~mask.numpy()].tolist() == [0, 0, 0]
  means = action_masks.mean_allowed(masked, axis=-1)
  np.testing.assert_allclose(means, [3.5, 4])
  assert action_masks.mean_allowed(masked).numpy() == pytest.approx(11 / 3)


def test_dueling_means_are_of_allowed_actions():
  head = networks.DuelingHead(3)
  features = tf.random.stateless_normal([2, 4], [1, 2])
  all_values = head(features).numpy()
  mask = np.array([[True, False, True], [False, True, True]])
  found = head(features, tf.constant(mask)).numpy()
  # Values differ by the means alone, so allowed ones have the mean v(s).
  value = all_values.mean(1)
  for row in range(2):
    allowed = mask[row]
    assert found[row, allowed].mean() == pytest.approx(value[row], abs=1e-6)
    np.testing.assert_allclose(
      np.ptp(found[row]), np.ptp(all_values[row]), rtol=1e-5
    )


def test_random_actions_are_uniform_among_the_allowed():
  masked = action_masks.MASKED
  values = np.array([[0, masked, 2, masked, 1]] * 4, np.float32)
  policy = policies.EpsilonGreedyPolicy(
    lambda _: tf.constant(values), [1.0] * 4, seed=3, masked=True
  )
  state, counts = policy.initial_state(range(4)), np.zeros(5)
  for _ in itertools.repeat(None, 750):
    output = policy.step(None, state)
    state = output.state
    counts += np.bincount(output.action, minlength=5)
  assert counts[[1, 3]].tolist() == [0, 0]
  np.testing.assert_allclose(counts[[0, 2, 4]] / 3000, 1 / 3, atol=0.03)
