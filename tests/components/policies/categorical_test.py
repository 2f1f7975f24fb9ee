"""Tests of the categorical policy of off-policy agents."""

import numpy as np
import tensorflow as tf

from repertory.components import policies, specs
from repertory.components.actions import discrete_actions

_LOGITS = np.log([[0.7, 0.1, 0.2]])


def _make(spec, num_actions=3, **settings):
  logits = tf.constant(_LOGITS[:, :num_actions], tf.float32)
  return policies.CategoricalPolicy(
    lambda observation: tf.repeat(logits, len(observation), axis=0),
    discrete_actions.DiscreteActions(spec),
    seed=3,
    **settings,
  )


def _act(policy, num_rows, ids=None):
  state = policy.initial_state(ids or range(num_rows))
  return policy.step(tf.zeros([num_rows, 1]), state)


def test_draws_as_often_as_is_likely():
  output = _act(_make(specs.DiscreteArray(3)), 5_000)
  shares = np.bincount(output.action, minlength=3) / 5_000
  np.testing.assert_allclose(shares, np.exp(_LOGITS[0]), atol=0.02)
  assert output.extras == ()
  again = _make(specs.DiscreteArray(3)).step(tf.zeros([5_000, 1]), output.state)
  assert np.mean(again.action != output.action) > 0.3


def test_first_steps_may_be_random():
  policy = _make(specs.DiscreteArray(3), num_random_steps=3, steps_done=1)
  state = policy.initial_state(range(5_000))
  for expected in ([1 / 3] * 3, [1 / 3] * 3, np.exp(_LOGITS[0])):
    output = policy.step(tf.zeros([5_000, 1]), state)
    shares = np.bincount(output.action, minlength=3) / 5_000
    np.testing.assert_allclose(shares, expected, atol=0.03)
    state = output.state


def test_evaluation_takes_the_most_probable():
  output = _act(_make(specs.DiscreteArray(3), evaluation=True), 50)
  assert set(output.action.numpy()) == {0}


def test_makes_the_actions_of_the_spec():
  spec = specs.BoundedArray((2,), np.int64, [5, 0], [5, 2])
  actions = _act(_make(spec), 200).action.numpy()
  assert actions.dtype == np.int64
  assert {tuple(action) for action in actions} == {(5, 0), (5, 1), (5, 2)}
