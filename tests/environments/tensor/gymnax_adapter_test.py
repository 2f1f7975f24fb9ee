"""Tests that translated games equal gymnax's own in JAX."""

import dataclasses
import functools
import types
from typing import Any

import cloudpickle
import numpy as np
import pytest
import tensorflow as tf
from dm_env import specs

from repertory.environments import conformance, tensor
from repertory.environments.tensor import gymnax_adapter
from repertory.environments.values.argument_checks import ArgumentError
from support.agents import random_draws

gymnax = pytest.importorskip('gymnax')
jax = pytest.importorskip('jax')
spaces = pytest.importorskip('gymnax.environments.spaces')
mnist = pytest.importorskip('gymnax.environments.bsuite.mnist')

FIRST, MID, LAST = 0, 1, 2

# Its images are downloaded.
_MNIST = 'MNISTBandit-bsuite'
_ALL_IDS = tuple(id for id in gymnax.registered_envs if id != _MNIST)


def to_arrays(nest):
  return tf.nest.map_structure(lambda tensor: tensor.numpy(), nest)


class Twin:
  """Reference: gymnax's own game in JAX, for B rows."""

  def __init__(self, id):
    self.game, self.params = gymnax.make(id)
    self.reset = jax.jit(jax.vmap(self.game.reset_env, (0, None)))
    self.step = jax.jit(jax.vmap(self.game.step_env, (0, 0, 0, None)))
    _, state = self.game.reset_env(jax.random.PRNGKey(0), self.params)
    self.structure = jax.tree_util.tree_structure(state)

  def play(self, state, action):
    """Returns leaves, observation, reward and the ended rows, as arrays."""
    keys = np.array(
      [
        divmod(random_draws.Stream(counter).next_bits(), 2**32)
        for counter in state.counters.numpy()
      ],
      np.uint32,
    )
    before = [leaf.numpy() for leaf in state.core.leaves]
    fresh = self.reset(keys, self.params)
    observation, after, reward, done, _ = self.step(
      keys, self.structure.unflatten(before), action, self.params
    )
    first = state.ended.numpy()

    def choose(one, other):
      one, other = np.asarray(one), np.asarray(other)
      shape = [-1] + [1] * (other.ndim - 1)
      return np.where(first.reshape(shape), one, other)

    leaves = zip(*map(jax.tree_util.tree_leaves, (fresh[1], after)))
    return (
      [choose(one, other) for one, other in leaves],
      choose(fresh[0], observation),
      choose(np.float32(0), reward),
      choose(False, done),
    )


@pytest.mark.parametrize(
  ('id', 'tolerance'),
  [
    ('Breakout-MinAtar', 0),
    ('UmbrellaChain-bsuite', 1e-6),  # Draws random numbers in each step.
  ],
)
# Caused by gymnax's own code.
@pytest.mark.filterwarnings('ignore:scatter inputs:FutureWarning')
def test_equals_gymnax(id, tolerance):
  environment, twin = gymnax_adapter.Gymnax(id), Twin(id)
  state = environment.initial_state(tensor.initial_counters(range(11)))
  step = tf.function(environment.step, autograph=False)
  random = np.random.default_rng(0)
  ends = 0
  for _ in range(100):
    action = conformance.draw_actions(environment.action_spec(), 11, random)
    leaves, observation, reward, done = twin.play(state, action)
    state, timestep = step(state, tf.constant(action))
    core, timestep = to_arrays((state.core, timestep))
    found = [*core.leaves, timestep.observation, timestep.reward]
    for one, other in zip(found, [*leaves, observation, reward], strict=True):
      np.testing.assert_allclose(one, other, tolerance, tolerance)
    np.testing.assert_array_equal(timestep.step_type == LAST, done)
    ends += done.sum()
  assert ends > 5


class TestGames:
  @pytest.mark.learning  # Trains nothing, but takes minutes to compile.
  @pytest.mark.parametrize('id', _ALL_IDS)
  def test_steps_fit_the_specs(self, id):
    environment = gymnax_adapter.Gymnax(id)
    environments = tensor.Factory(lambda: environment).make_batch([0, 1, 2])
    random = np.random.default_rng(0)
    timesteps = [environments.reset()]
    for _ in range(12):
      action = conformance.draw_actions(environment.action_spec(), 3, random)
      timesteps.append(environments.step(action))
    for timestep in timesteps:
      for row in timestep.observation:
        environment.observation_spec().validate(row)
      assert np.isfinite(timestep.reward).all()

  def test_specs(self):
    cart_pole = gymnax_adapter.Gymnax('CartPole-v1')
    assert cart_pole.action_spec() == specs.DiscreteArray(2, name='action')
    assert cart_pole.observation_spec() == specs.Array(
      (4,), np.float32, 'observation'
    )
    pendulum = gymnax_adapter.Gymnax('Pendulum-v1').action_spec()
    assert (pendulum.shape, pendulum.dtype) == ((1,), np.float32)
    np.testing.assert_array_equal(pendulum.minimum, np.float32([-2]))
    np.testing.assert_array_equal(pendulum.maximum, np.float32([2]))

  def test_pictures_that_cannot_be_loaded(self, monkeypatch):
    def load():
      raise OSError('no network')

    monkeypatch.setattr(mnist, 'load_mnist', load)
    with pytest.raises(
      ArgumentError, match=f"`id`.*cannot make '{_MNIST}': OSError: no network"
    ):
      gymnax_adapter.Gymnax(_MNIST)

  def test_pickled_in_the_middle_of_an_episode(self):
    environments = tensor.Factory(
      functools.partial(gymnax_adapter.Gymnax, 'CartPole-v1')
    ).make_batch([3, 4])
    environments.reset()
    action = np.ones(2, np.int32)
    environments.step(action)
    other = cloudpickle.loads(cloudpickle.dumps(environments))
    for _ in range(15):
      one, two = environments.step(action), other.step(action)
      tf.nest.map_structure(np.testing.assert_array_equal, one, two)


class TestEnds:
  def step_from(self, environment, action, **values):
    """Takes a step from a new game whose state has some changed parts."""
    game, params = gymnax.make(environment.__reduce__()[1][0])
    _, like = game.reset_env(jax.random.PRNGKey(0), params)
    names = [field.name for field in dataclasses.fields(like)]
    state = environment.initial_state(tensor.initial_counters([0]))
    state, _ = environment.reset(state)
    leaves = list(state.core.leaves)
    for name, value in values.items():
      i = names.index(name)
      leaves[i] = tf.cast(tf.fill(leaves[i].shape, value), leaves[i].dtype)
    core = state.core._replace(leaves=tuple(leaves))
    state = state._replace(core=core)
    _, timestep = environment.step(state, tf.constant([action]))
    return int(timestep.step_type), float(timestep.discount)

  @pytest.mark.parametrize(
    ('values', 'expected'),
    [
      ({'time': 498}, (MID, 1)),
      ({'time': 499}, (LAST, 1)),
      ({'time': 499, 'x': 2.5}, (LAST, 0)),
    ],
  )
  def test_cart_pole(self, values, expected):
    environment = gymnax_adapter.Gymnax('CartPole-v1')
    assert self.step_from(environment, 0, **values) == expected


class Fake:
  """Counts to 3; tests change parts of it."""

  def __init__(self, **changes):
    vars(self).update(changes)

  def reset_env(self, key, params):
    return jax.numpy.zeros(2), {'count': 0}

  def step_env(self, key, state, action, params):
    count = state['count'] + 1
    observation = count * jax.numpy.ones(2)
    return observation, {'count': count}, 1, count == 3, {}

  def action_space(self, params):
    return spaces.Discrete(2)

  def observation_space(self, params):
    return spaces.Box(0, 3, (2,))


def make_fake(**changes):
  fake: Any = types.ModuleType('fake')
  fake.make = lambda id: (Fake(**changes), None)
  fake.registered_envs = ['Fake']
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(gymnax_adapter, '_import_packages', lambda: (jax, fake))
    return gymnax_adapter.Gymnax('Fake')


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    (
      {'reset_env': lambda key, params: ({'a': 0}, {'count': 0})},
      'expected an observation of one array',
    ),
    (
      {'reset_env': lambda key, params: (jax.numpy.zeros(3), {'count': 0})},
      r'expected observation: float32\[3\], found float32\[2\]',
    ),
    (
      {'action_space': lambda _: spaces.Box(0, 1, (2,), np.int32)},
      'expected actions that are Discrete or a Box of floats',
    ),
  ],
)
def test_games_that_do_not_fit(changes, message):
  with pytest.raises(
    ArgumentError, match=f"`id`: 'Fake' of gymnax does not fit.*{message}"
  ):
    make_fake(**changes)
