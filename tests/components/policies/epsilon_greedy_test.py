"""Tests of `components/policies/epsilon_greedy.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import policies

NUM_ACTIONS = 4


def table_network(observation):
  """The observation itself is the values: rows cannot mix."""
  return observation


def run(policy, ids, values, num_steps, jit_compile=False):
  """Returns the actions `[num_steps, B]` for the same values in each step."""

  def act(values, state):
    return policy.step(values, policy.reset_state(state, tf.zeros(len(ids))))

  act = tf.function(act, jit_compile=jit_compile, autograph=False)
  state, actions = policy.initial_state(ids), []
  for _ in range(num_steps):
    output = act(values, state)
    state = output.state
    actions.append(output.action.numpy())
  return np.stack(actions)


def run_long(policy, ids, values, num_steps):
  """The same in one call, for many steps."""

  @tf.function
  def act(values, state):
    actions = tf.TensorArray(tf.int32, num_steps)
    for i in tf.range(num_steps):
      output = policy.step(values, state)
      state = output.state
      actions = actions.write(i, output.action)
    return actions.stack()

  return act(values, policy.initial_state(ids)).numpy()


def values_of(num_rows, seed=0):
  random = np.random.default_rng(seed)
  return tf.constant(random.normal(size=[num_rows, NUM_ACTIONS]), tf.float32)


class TestEpsilonLadder:
  @pytest.mark.parametrize(
    ('n', 'expected'),
    [
      # ε_i = base^(1 + exponent · i / (N − 1)), Ape-X, section 4.1.
      (1, [0.4 ** (1 + 7 / 2)]),
      (5, [0.4, 0.4**2.75, 0.4**4.5, 0.4**6.25, 0.4**8]),
    ],
  )
  def test_equation(self, n, expected):
    np.testing.assert_allclose(policies.epsilon_ladder(n), expected, rtol=1e-12)


class TestEpsilonGreedyPolicy:
  def test_random_actions_are_as_frequent_as_epsilon(self):
    epsilons = [0.0, 0.05, 0.3, 0.7, 1.0]
    policy = policies.EpsilonGreedyPolicy(table_network, epsilons, seed=1)
    values = values_of(5)
    num_steps = 20_000
    actions = run_long(policy, range(5), values, num_steps)
    greedy = np.argmax(values, axis=-1)
    for row, epsilon in enumerate(epsilons):
      for action in range(NUM_ACTIONS):
        # A random action is the greedy one in one of four cases.
        p = epsilon / NUM_ACTIONS
        if action == greedy[row]:
          p += 1 - epsilon
        count = np.count_nonzero(actions[:, row] == action)
        deviation = (num_steps * p * (1 - p)) ** 0.5
        assert abs(count - num_steps * p) <= 4.5 * deviation, (row, action)

  def test_environments_and_seeds_differ(self):
    values = tf.zeros([8, NUM_ACTIONS])
    policy = policies.EpsilonGreedyPolicy(table_network, [1.0] * 8, seed=5)
    actions = run(policy, range(8), values, 50)
    assert len({tuple(column) for column in actions.T}) == 8
    other_seed = policies.EpsilonGreedyPolicy(table_network, [1.0] * 8, seed=6)
    others = run(other_seed, range(8), values, 50)
    assert not np.any(np.all(actions == others, axis=0))
    np.testing.assert_array_equal(actions, run(policy, range(8), values, 50))

  def test_to_action(self):
    policy = policies.EpsilonGreedyPolicy(
      table_network,
      [0.0],
      0,
      to_action=lambda number: {'tens': 10 * number, 'one': number},
    )
    values = values_of(1)
    output = policy.step(values, policy.initial_state([0]))
    best = np.argmax(values, axis=-1)
    np.testing.assert_array_equal(output.action['one'], best)
    np.testing.assert_array_equal(output.action['tens'], 10 * best)
    assert output.extras == ()

  def test_wrong_settings(self):
    with pytest.raises(ValueError, match=r'epsilons must be in \[0, 1\]'):
      policies.EpsilonGreedyPolicy(table_network, [0.5, 1.1], 0)


class TestAnnealing:
  def test_falls_from_one_linearly(self):
    # Streams are independent, so the rows of one step estimate the share of
    # random actions.
    num_rows, anneal_steps = 4000, 4
    ids = range(num_rows)
    policy = policies.EpsilonGreedyPolicy(
      table_network, [0.2] * num_rows, 3, anneal_steps=anneal_steps
    )
    values = tf.tile([[1.0, 0.0, 0.0, 0.0]], [num_rows, 1])
    actions = run(policy, ids, values, 7)
    expected = [1, 0.8, 0.6, 0.4, 0.2, 0.2, 0.2]
    for step, epsilon in enumerate(expected):
      # Three of four random actions are not the greedy one.
      p = 0.75 * epsilon
      count = np.count_nonzero(actions[step])
      assert (
        abs(count - num_rows * p) < 4.5 * (num_rows * p * (1 - p)) ** 0.5
      ), step

  def test_continues_after_the_steps_done(self):
    def make(steps_done):
      return policies.EpsilonGreedyPolicy(
        table_network, [0.0] * 8, 3, anneal_steps=100, steps_done=steps_done
      )

    values, ids = values_of(8), range(8)
    state = make(0).initial_state(ids)
    for _ in range(40):
      state = make(0).step(values, state).state
    resumed = make(40).initial_state(ids)
    np.testing.assert_array_equal(state['steps'], resumed['steps'])
    # Annealing is finished.
    greedy = np.tile(np.argmax(values, axis=-1), [30, 1])
    np.testing.assert_array_equal(run(make(100), ids, values, 30), greedy)
    assert np.any(run(make(0), ids, values, 30) != greedy)


class TestNoisyNetworks:
  size = 6

  def make(self, epsilons=(0.0,) * 8, seed=3):
    return policies.EpsilonGreedyPolicy(
      lambda observation, noise: observation + noise, epsilons, seed,
      noise_size=self.size,
    )  # fmt: skip

  def run(self, policy, ids):
    return run(policy, ids, tf.zeros([len(ids), self.size]), 60)

  def test_noise_is_new_in_each_step_and_each_environment(self):
    actions = self.run(self.make(), range(8))
    # Each of six values is the largest as often as any other.
    counts = np.bincount(actions.ravel(), minlength=self.size)
    p, n = 1 / self.size, actions.size
    assert np.abs(counts - n * p).max() < 4.5 * np.sqrt(n * p * (1 - p))
    assert len({tuple(column) for column in actions.T}) == 8
    np.testing.assert_array_equal(
      self.run(self.make(), [3, 0]), actions[:, [3, 0]]
    )
    assert (self.run(self.make(seed=4), range(8)) != actions).any()

  def test_epsilon_adds_random_actions(self):
    # Noise is far smaller than the values, so only ε changes the action.
    values = tf.tile(100.0 * tf.one_hot([2], self.size), [500, 1])
    actions = run(self.make([0.5] * 500), range(500), values, 1)
    p = 0.5 * (self.size - 1) / self.size
    others = np.count_nonzero(actions != 2)
    assert abs(others - 500 * p) < 4.5 * np.sqrt(500 * p * (1 - p))
