"""Tests of `NoisyEpsilonGreedyPolicy` of `components/policies`."""

import numpy as np
import tensorflow as tf

from repertory.components import policies

K, A = 6, 6


def noise_network(observation, noise):
  """The noise itself is the values."""
  return observation + noise


def make(epsilons=(0.0,) * 8, seed=3, **settings):
  return policies.NoisyEpsilonGreedyPolicy(
    noise_network, K, epsilons, seed, **settings
  )


def run(policy, ids, num_steps=60):
  act = tf.function(policy.step, autograph=False)
  state, actions = policy.initial_state(ids), []
  for _ in range(num_steps):
    output = act(tf.zeros([len(ids), A]), state)
    state = output.state
    actions.append(output.action.numpy())
  return np.stack(actions)  # [T, B]


def test_noise_is_new_in_each_step_and_each_environment():
  actions = run(make(), range(8))
  # Each of six values is the largest as often as any other.
  counts = np.bincount(actions.ravel(), minlength=A)
  p, n = 1 / A, actions.size
  assert np.abs(counts - n * p).max() < 4.5 * np.sqrt(n * p * (1 - p))
  assert len({tuple(column) for column in actions.T}) == 8


def test_noise_belongs_to_the_environment():
  together = run(make(), [3, 0, 5])
  for row, i in enumerate([3, 0, 5]):
    np.testing.assert_array_equal(run(make(), [i])[:, 0], together[:, row])
  assert (run(make(seed=4), [3, 0, 5]) != together).any()


def test_epsilon_adds_random_actions():
  # Values that noise cannot turn around, so only chance acts otherwise.
  policy = make(epsilons=(0.5,))
  state, others = policy.initial_state([0]), 0
  act = tf.function(policy.step, autograph=False)
  for _ in range(200):
    output = act(100.0 * tf.one_hot([2], A), state)
    state = output.state
    others += int(output.action[0] != 2)
  p = 0.5 * (A - 1) / A
  assert abs(others - 200 * p) < 4.5 * np.sqrt(200 * p * (1 - p))
