"""Compares tensor environments with slow references, given the same draws.

The references are the host games in NumPy, and Gymnasium's environments in
double precision; SplitMix64 is reimplemented here with Python's integers.
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

NUM_ROWS = 3
TOLERANCE = 1e-6


class Draws:
  """Random stream of one row; stands in for NumPy's generators."""

  def __init__(self, counter):
    self.counter = int(counter)

  def pair(self):
    """Returns the next two numbers, as multiples of 2 ** -24."""
    self.counter = (self.counter + 0x9E3779B97F4A7C15) % 2**64
    z = self.counter
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    z = z ^ z >> 31
    return z >> 40, z % 2**24

  def integers(self, end):
    # The product is rounded to float32, like that of the tensors.
    return int(np.float32(self.pair()[0] * 2.0**-24) * np.float32(end))

  def uniform(self, low, high):
    return [low + (high - low) * bits * 2.0**-24 for bits in self.pair()]


def play_in_loop(environment, counters, actions):
  """Returns timesteps as arrays `[T + 1, B, ...]`, from one compiled loop."""
  num_steps = len(actions)
  state, first = environment.reset(environment.initial_state(counters))

  @tf.function
  def loop(state):
    arrays = tf.nest.map_structure(
      lambda leaf: tf.TensorArray(
        leaf.dtype, num_steps, element_shape=leaf.shape
      ),
      first,
    )

    def body(i, state, arrays):
      state, timestep = environment.step(state, tf.gather(actions, i))
      arrays = tf.nest.map_structure(
        lambda array, leaf: array.write(i, leaf), arrays, timestep
      )
      return i + 1, state, arrays

    _, _, arrays = tf.while_loop(
      lambda i, *_: i < num_steps,
      body,
      (0, state, arrays),
      maximum_iterations=num_steps,
    )
    return tf.nest.map_structure(lambda array: array.stack(), arrays)

  return tf.nest.map_structure(
    lambda one, rest: np.concatenate([one[None], rest]), first, loop(state)
  )


@pytest.mark.parametrize(
  ('environment', 'make_twin', 'num_actions'),
  [
    pytest.param(catch.TensorCatch(), host_catch.Catch, 3, id='catch'),
    pytest.param(
      catch.TensorCatch(4, 6),
      lambda: host_catch.Catch(4, 6),
      3,
      id='catch_4x6',
      marks=pytest.mark.chaos,
    ),
    pytest.param(
      memory_chain.TensorMemoryChain(),
      host_memory_chain.MemoryChain,
      2,
      id='chain',
    ),
    pytest.param(
      memory_chain.TensorMemoryChain(1),
      lambda: host_memory_chain.MemoryChain(1),
      2,
      id='chain_1',
      marks=pytest.mark.chaos,
    ),
  ],
)
def test_games_of_the_host(environment, make_twin, num_actions):
  num_steps = 3_000
  actions = np.random.default_rng(0).integers(
    num_actions, size=(num_steps, NUM_ROWS), dtype=np.int32
  )
  counters = tensor.initial_counters(range(NUM_ROWS))
  found = play_in_loop(environment, counters, actions)
  num_rewards = 0
  for row in range(NUM_ROWS):
    twin = make_twin()
    twin._random = Draws(counters[row])
    timestep = twin.reset()
    for t in range(num_steps + 1):
      reward, discount = timestep.reward, timestep.discount
      if timestep.first():
        reward, discount = 0, 1
      assert found.step_type[t, row] == timestep.step_type
      assert found.reward[t, row] == reward
      assert found.discount[t, row] == discount
      np.testing.assert_array_equal(
        found.observation[t, row], timestep.observation
      )
      num_rewards += reward > 0
      if t < num_steps:
        timestep = twin.step(actions[t, row])
  assert num_rewards > 100  # The policy does win some games.


def to_arrays(nest):
  return tf.nest.map_structure(lambda tensor: tensor.numpy(), nest)


def check_close(found, expected):
  """Compares with a tolerance of 1e-6, relative above 1."""
  scale = np.maximum(1, np.abs(expected))
  np.testing.assert_array_less(np.abs(found - expected) / scale, TOLERANCE)


def make_core(kind, *floats, num_steps=0):
  floats = [tf.constant(each, tf.float32) for each in floats]
  return kind(*floats, tf.fill(floats[0].shape, num_steps))


class TestCartPole:
  def test_start(self):
    counters = tensor.initial_counters(range(50))
    core, counters_after = cartpole.CartPole().start(counters, None)
    for row in range(50):
      draws = Draws(counters[row])
      drawn = draws.uniform(-0.05, 0.05) + draws.uniform(-0.05, 0.05)
      found = [core[i].numpy()[row] for i in range(4)]
      np.testing.assert_allclose(found, drawn, rtol=1e-6, atol=1e-9)
      assert draws.counter == int(counters_after[row])

  def test_steps_are_those_of_gymnasium(self):
    environment = cartpole.CartPole()
    twin = gymnasium.make('CartPole-v1').unwrapped
    twin.reset(seed=0)
    step = tf.function(environment.step, autograph=False)
    random = np.random.default_rng(1)
    state, _ = environment.reset(
      environment.initial_state(tensor.initial_counters(range(NUM_ROWS)))
    )
    num_ends = 0
    for _ in range(1500):
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
    assert num_ends > 100

  def test_extreme_states(self):
    # Speeds that no policy reaches, at valid angles.
    random = np.random.default_rng(2)
    scales = [2.4, 10, 0.2, 10]
    before = (random.uniform(-1, 1, (200, 4)) * scales).astype(np.float32)
    actions = random.integers(2, size=200, dtype=np.int32)
    environment = cartpole.CartPole()
    after = environment.advance(
      make_core(cartpole.CartPoleCore, *before.T),
      tf.constant(actions),
      tf.zeros(200),
    )
    twin = gymnasium.make('CartPole-v1').unwrapped
    twin.reset(seed=0)
    for row in range(200):
      twin.state = before[row].astype(np.float64)
      twin.steps_beyond_terminated = None
      _, _, terminated, _, _ = twin.step(actions[row])
      check_close(environment.observe(after.core)[row].numpy(), twin.state)
      assert bool(after.terminated[row]) == terminated

  @pytest.mark.parametrize(
    ('position', 'angle', 'terminated'),
    [
      # Of a resting cart, only the speeds change in a step.
      (2.3999, 0, False),
      (2.4001, 0, True),
      (-2.3999, 0, False),
      (-2.4001, 0, True),
      (0, 0.20943, False),  # 12 degrees are 0.2094395.
      (0, 0.20945, True),
      (0, -0.20943, False),
      (0, -0.20945, True),
    ],
  )
  def test_limits(self, position, angle, terminated):
    core = make_core(cartpole.CartPoleCore, [position], [0], [angle], [0])
    after = cartpole.CartPole().advance(core, tf.constant([0]), tf.zeros(1))
    assert bool(after.terminated[0]) == terminated

  def test_truncation(self):
    # Pushing in the direction of the fall balances the pole until the end.
    environment = cartpole.CartPole()
    step = tf.function(environment.step, autograph=False)
    state, timestep = environment.reset(
      environment.initial_state(tensor.initial_counters([0]))
    )
    num_steps = 0
    while timestep.step_type != dm_env.StepType.LAST:
      _, speed, angle, angular_speed = timestep.observation[0].numpy()
      push = angle + 0.2 * angular_speed + 0.02 * speed > 0
      state, timestep = step(state, tf.constant([int(push)]))
      num_steps += 1
    limit = gymnasium.spec('CartPole-v1').max_episode_steps
    assert (num_steps, timestep.discount) == (limit, 1)
    _, timestep = step(state, tf.constant([0]))
    assert timestep.step_type == dm_env.StepType.FIRST

  def test_end_in_the_last_step_is_an_end(self):
    environment = cartpole.CartPole()
    core = make_core(
      cartpole.CartPoleCore, [2.4001], [0], [0], [0], num_steps=499
    )
    state = tensor.State(
      core, tensor.initial_counters([0]), tf.constant([False])
    )
    _, timestep = environment.step(state, tf.constant([0]))
    assert timestep.step_type == dm_env.StepType.LAST
    assert timestep.discount == 0


class TestPendulum:
  def test_start(self):
    counters = tensor.initial_counters(range(50))
    core, counters_after = pendulum.Pendulum().start(counters, None)
    for row in range(50):
      draws = Draws(counters[row])
      angle, speed = draws.uniform(-1, 1)
      found = core.angle.numpy()[row], core.speed.numpy()[row]
      np.testing.assert_allclose(found, [angle * np.pi, speed], rtol=1e-6)
      assert draws.counter == int(counters_after[row])

  def test_steps_are_those_of_gymnasium(self):
    environment = pendulum.Pendulum()
    twin = gymnasium.make('Pendulum-v1').unwrapped
    twin.reset(seed=0)
    step = tf.function(environment.step, autograph=False)
    random = np.random.default_rng(1)
    state, timestep = environment.reset(
      environment.initial_state(tensor.initial_counters(range(NUM_ROWS)))
    )
    largest = np.zeros(2)
    num_turns = 0
    for _ in range(1500):
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
    assert num_turns > 100
    assert np.abs(state.core.angle.numpy()).max() <= np.float32(np.pi)

  def test_truncation(self):
    environment = pendulum.Pendulum()
    limit = gymnasium.spec('Pendulum-v1').max_episode_steps or 0
    actions = np.zeros((2 * limit + 2, 1, 1), np.float32)
    timesteps = play_in_loop(environment, tensor.initial_counters([0]), actions)
    last = np.flatnonzero(timesteps.step_type == dm_env.StepType.LAST)
    assert last.tolist() == [limit, 2 * limit + 1]
    assert (timesteps.discount == 1).all()


class TestTrigonometry:
  def test_values(self):
    angles = np.linspace(-2 * np.pi, 2 * np.pi, 20_001).astype(np.float32)
    sine, cosine = trigonometry.sine_and_cosine(tf.constant(angles))
    exact = angles.astype(np.float64)
    np.testing.assert_allclose(sine, np.sin(exact), rtol=0, atol=1e-7)
    np.testing.assert_allclose(cosine, np.cos(exact), rtol=0, atol=1e-7)
    assert np.abs([sine, cosine]).max() <= 1

  def test_small_values(self):
    angles = np.linspace(-np.pi / 4, np.pi / 4, 10_001).astype(np.float32)
    sine, cosine = trigonometry.sine_and_cosine_of_small(tf.constant(angles))
    exact = angles.astype(np.float64)
    np.testing.assert_allclose(sine, np.sin(exact), rtol=2e-7, atol=0)
    np.testing.assert_allclose(cosine, np.cos(exact), rtol=2e-7, atol=0)
