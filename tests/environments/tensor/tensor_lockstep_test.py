"""Compares tensor environments with slow references, given the same draws.

The references are the host games in NumPy, and Gymnasium's environments in
double precision.
"""

import dm_env
import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from repertory.environments import tensor
from repertory.environments.games import catch as host_catch
from repertory.environments.games import memory_chain as host_memory_chain
from repertory.environments.tensor import (
  cartpole,
  catch,
  memory_chain,
  pendulum,
  trigonometry,
)
from support.agents import random_draws

NUM_ROWS = 3
TOLERANCE = 1e-6


class Draws:
  """Random stream of one row; stands in for NumPy's generators."""

  def __init__(self, counter):
    self._stream = random_draws.Stream(counter)

  def uniform(self, low, high):
    return [low + (high - low) * u for u in self._stream.draw(2)]

  def integers(self, end):
    # The product is rounded to float32, like that of the tensors.
    return int(np.float32(self._stream.draw(1)[0]) * np.float32(end))


def start(environment, num_rows=NUM_ROWS):
  """Returns the step as a graph, and the results of a reset."""
  counters = tensor.initial_counters(range(num_rows))
  state = environment.initial_state(counters)
  step = tf.function(environment.step, autograph=False)
  return step, *environment.reset(state)


@pytest.mark.parametrize(
  ('environment', 'make_twin', 'num_actions'),
  [
    pytest.param(catch.TensorCatch(), host_catch.Catch, 3, id='catch'),
    pytest.param(
      memory_chain.TensorMemoryChain(),
      host_memory_chain.MemoryChain,
      2,
      id='chain',
    ),
  ],
)
def test_games_of_the_host(environment, make_twin, num_actions):
  random = np.random.default_rng(0)
  step, state, found = start(environment)
  twins = [make_twin() for _ in range(NUM_ROWS)]
  counters = tensor.initial_counters(range(NUM_ROWS)).numpy()
  for twin, counter in zip(twins, counters):
    twin._random = Draws(counter)
  timesteps = [twin.reset() for twin in twins]
  num_rewards = 0
  for _ in range(800):
    found = to_arrays(found)
    for row, timestep in enumerate(timesteps):
      reward, discount = timestep.reward, timestep.discount
      if timestep.first():
        reward, discount = 0, 1
      assert found.step_type[row] == timestep.step_type
      assert (found.reward[row], found.discount[row]) == (reward, discount)
      np.testing.assert_array_equal(
        found.observation[row], timestep.observation
      )
      num_rewards += reward > 0
    actions = random.integers(num_actions, size=NUM_ROWS, dtype=np.int32)
    state, found = step(state, tf.constant(actions))
    timesteps = [twin.step(action) for twin, action in zip(twins, actions)]
  assert num_rewards > 25  # The policy does win some games.


def to_arrays(nest):
  return tf.nest.map_structure(lambda tensor: tensor.numpy(), nest)


def check_close(found, expected):
  """Compares with a tolerance of 1e-6, relative above 1."""
  scale = np.maximum(1, np.abs(expected))
  np.testing.assert_array_less(np.abs(found - expected) / scale, TOLERANCE)


def make_core(kind, *floats, num_steps=0):
  floats = [tf.constant(each, tf.float32) for each in floats]
  return kind(*floats, tf.fill(floats[0].shape, num_steps))


def check_last(environment, core, action, discount):
  """Checks that a step ends the episode."""
  counters = tensor.initial_counters([0])
  state = tensor.State(core, counters, tf.constant([False]))
  _, timestep = environment.step(state, action)
  assert timestep.step_type == dm_env.StepType.LAST
  assert timestep.discount == discount


class TestCartPole:
  def test_start(self):
    counters = tensor.initial_counters(range(50))
    core, _ = cartpole.CartPole().start(counters, None)
    for row in range(50):
      draws = Draws(int(counters[row]))
      drawn = draws.uniform(-0.05, 0.05) + draws.uniform(-0.05, 0.05)
      found = [core[i].numpy()[row] for i in range(4)]
      np.testing.assert_allclose(found, drawn, rtol=1e-6, atol=1e-9)

  def test_steps_are_those_of_gymnasium(self):
    environment = cartpole.CartPole()
    twin = gymnasium.make('CartPole-v1').unwrapped
    twin.reset(seed=0)
    step, state, _ = start(environment)
    random = np.random.default_rng(1)
    num_ends = 0
    for _ in range(500):
      before = np.stack([part.numpy() for part in state.core[:4]], 1)
      ended = state.ended.numpy()
      actions = random.integers(2, size=NUM_ROWS, dtype=np.int32)
      state, timestep = step(state, tf.constant(actions))
      timestep = to_arrays(timestep)
      for row in np.flatnonzero(~ended):
        twin.state = before[row].astype(np.float64)
        twin.steps_beyond_terminated = None
        _, reward, terminated, _, _ = twin.step(actions[row])
        check_close(timestep.observation[row], twin.state)
        assert timestep.reward[row] == reward == 1
        # None of these ends is within a millionth of a limit.
        assert bool(timestep.discount[row] == 0) == terminated
        num_ends += terminated
    assert num_ends > 30

  @pytest.mark.parametrize(('position', 'discount'), [(0, 1), (2.4001, 0)])
  def test_last_step(self, position, discount):
    limit = gymnasium.spec('CartPole-v1').max_episode_steps or 0
    core = make_core(
      cartpole.CartPoleCore, [position], [0], [0], [0], num_steps=limit - 1
    )
    check_last(cartpole.CartPole(), core, tf.constant([0]), discount)


class TestPendulum:
  def test_steps_are_those_of_gymnasium(self):
    environment = pendulum.Pendulum()
    twin = gymnasium.make('Pendulum-v1').unwrapped
    twin.reset(seed=0)
    step, state, timestep = start(environment)
    random = np.random.default_rng(1)
    largest = np.zeros(2)
    num_turns = 0
    for _ in range(500):
      angles, speeds = state.core.angle.numpy(), state.core.speed.numpy()
      ended = state.ended.numpy()
      # Pushes along the movement, to turn it over; partly out of bounds.
      actions = np.sign(speeds) * random.uniform(-0.5, 3, size=NUM_ROWS)
      actions = actions.astype(np.float32)[:, None]
      state, timestep = step(state, tf.constant(actions))
      timestep = to_arrays(timestep)
      largest = np.maximum(
        largest, [np.abs(angles).max(), np.abs(speeds).max()]
      )
      for row in np.flatnonzero(~ended):
        twin.state = np.array([angles[row], speeds[row]], np.float64)
        observation, reward, _, _, _ = twin.step(
          actions[row].astype(np.float64)
        )
        check_close(timestep.observation[row], observation)
        check_close(timestep.reward[row], reward)
        num_turns += abs(twin.state[0]) > np.pi
    assert largest[0] > 3.1
    assert largest[1] == 8
    assert num_turns > 30
    assert np.abs(state.core.angle.numpy()).max() <= np.float32(np.pi)

  def test_truncation(self):
    limit = gymnasium.spec('Pendulum-v1').max_episode_steps or 0
    core = make_core(pendulum.PendulumCore, [0], [0], num_steps=limit - 1)
    check_last(pendulum.Pendulum(), core, tf.zeros([1, 1]), 1)


class TestTrigonometry:
  def test_values(self):
    angles = np.linspace(-2 * np.pi, 2 * np.pi, 20_001).astype(np.float32)
    sine, cosine = trigonometry.sine_and_cosine(tf.constant(angles))
    exact = angles.astype(np.float64)
    np.testing.assert_allclose(sine, np.sin(exact), rtol=0, atol=1e-7)
    np.testing.assert_allclose(cosine, np.cos(exact), rtol=0, atol=1e-7)
    assert np.abs([sine, cosine]).max() <= 1
