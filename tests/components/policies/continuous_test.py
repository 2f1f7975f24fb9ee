"""Tests of the continuous policy of off-policy agents."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import policies, specs
from repertory.components.actions import action_scaling

SPEC = specs.BoundedArray((2,), np.float32, [-1, 2], [3, 4])
MIDDLE, HALF = np.array([1, 3]), np.array([2, 1])


def add(action, noise):
  return tf.clip_by_value(action + 0.5 * noise, -1.0, 1.0)


def make(choose=add, seed=7, spec=SPEC, **settings):
  return policies.ContinuousPolicy(
    lambda observation: 0.25 * observation,
    choose,
    action_scaling.ActionScaling(spec),
    seed,
    **settings,
  )


def observe(num_rows, t=0):
  random = np.random.default_rng(t)
  return tf.constant(random.normal(size=(num_rows, 2)), tf.float32)


def run(policy, ids, num_steps=5, observation=None, jit_compile=None):
  """Returns actions, `[T, B, 2]`, scaled back to [−1, 1]."""
  step, state, actions = policy.step, policy.initial_state(ids), []
  if jit_compile is not None:
    step = tf.function(step, autograph=False, jit_compile=jit_compile)
  for t in range(num_steps):
    seen = observe(len(ids), t) if observation is None else observation
    output = step(seen, state)
    state = output.state
    assert output.extras == ()
    actions.append((output.action.numpy() - MIDDLE) / HALF)
  return np.stack(actions)


def test_adds_noise_of_mean_0_and_deviation_1():
  seen = []

  def choose(action, noise):
    seen.append(noise.numpy())
    return action

  actions = run(make(choose), range(500), 20)
  noise = np.stack(seen)
  assert abs(noise.mean()) < 4.5 / np.sqrt(noise.size)
  assert abs(noise.std() - 1) < 4.5 / np.sqrt(2 * noise.size)
  # A few may be the same float by chance.
  assert len(np.unique(noise)) > noise.size - 20
  for t, action in enumerate(actions):
    expected = np.clip(0.25 * observe(500, t), -1, 1)
    np.testing.assert_allclose(action, expected, atol=1e-6)


def test_noise_may_be_correlated_over_steps():
  seen = []

  def choose(action, noise):
    seen.append(noise.numpy().reshape(-1))
    return action

  run(make(choose, noise_correlation=0.8), range(2_000), 6)
  size = seen[0].size
  for t, noise in enumerate(seen):
    assert abs(noise.std() - 1) < 4.5 / np.sqrt(2 * size)
    correlation = np.corrcoef(seen[0], noise)[0, 1]
    assert abs(correlation - 0.8**t) < 4.5 / np.sqrt(size)


def test_evaluation_is_without_noise():
  policy = make(evaluation=True, num_random_steps=100, noise_correlation=0.8)
  actions = run(policy, [0, 1, 2], jit_compile=True)
  for t, action in enumerate(actions):
    expected = np.clip(0.25 * observe(3, t), -1, 1)
    np.testing.assert_allclose(action, expected, atol=1e-6)


@pytest.mark.parametrize(
  ('num_random_steps', 'steps_done', 'expected'),
  [(3, 0, 3), (3, 2, 1), (0, 0, 0)],
)
def test_random_steps(num_random_steps, steps_done, expected):
  policy = make(
    lambda action, noise: action + 0 * noise,
    num_random_steps=num_random_steps,
    steps_done=steps_done,
  )
  actions = run(policy, [0, 1], 6, observation=tf.zeros([2, 2]))
  is_random = np.any(np.abs(actions) > 1e-6, axis=-1)
  for t in range(6):
    np.testing.assert_array_equal(is_random[t], [t < expected] * 2)


def test_random_actions_are_uniform():
  actions = run(make(num_random_steps=99), range(1000), 10)
  flat = np.sort(actions.reshape(-1))
  n = flat.size
  # Kolmogorov and Smirnov: √n times the largest distance is below 2 with a
  # probability of 1 − 2 e^−8.
  uniform = (np.arange(n) + 0.5) / n * 2 - 1
  assert np.abs(flat - uniform).max() / 2 < 2 / np.sqrt(n)
  correlation = np.corrcoef(actions.reshape(-1, 2).T)[0, 1]
  assert abs(correlation) < 4.5 / np.sqrt(n / 2)
