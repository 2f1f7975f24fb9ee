"""Environments of gymnax, translated from JAX to TensorFlow.

gymnax: https://github.com/RobertTLange/gymnax. JAX traces a game once, when it
is made; steps run without JAX.
"""

import contextlib
import functools
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from dm_env import specs

from repertory.components.runtime import random_streams
from repertory.environments.adapters import extras
from repertory.environments.rendering import quieting
from repertory.environments.tensor import environment
from repertory.environments.values import argument_checks

# Replaces the time limit; exact as an int32 and as a float32.
_NO_LIMIT = 2**30


class GymnaxCore(NamedTuple):
  """State of B games.

  Attributes:
    leaves: Leaves of gymnax's state, tensors `[B, ...]`.
    observation: The last observation, `[B, ...]`. It is part of the core
      because some games draw it at random, and some show the state before the
      step.
  """

  leaves: tuple[tf.Tensor, ...]
  observation: tf.Tensor


class Gymnax(environment.TensorEnvironment):
  """A registered game with its default parameters.

  Each step is gymnax's `step_env`, which does not restart episodes, with a key
  drawn from the row's counter. An end that would also occur without a time
  limit is a termination, any other a truncation; gymnax itself does not
  distinguish the two.

  XLA always compiles the steps, because TensorFlow has no other kernels for
  some of their operations.
  """

  def __init__(self, id: str):
    """Traces the game.

    If JAX has no platforms configured, it is restricted to the CPU from now on:
    the GPU's memory is reserved for TensorFlow.

    Args:
      id: Such as 'CartPole-v1' or 'Breakout-MinAtar'.

    Raises:
      ImportError: If gymnax is not installed.
      ArgumentError: If the game is unknown, if gymnax cannot make it, or if it
        does not fit a tensor environment.
    """
    jax, gymnax = _import_packages()
    argument_checks.check_known('id', id, gymnax.registered_envs)
    self._id = id
    self._translation = _translate(jax, gymnax, id)

  def __reduce__(self):
    """Pickles the id alone, because traced functions cannot be pickled."""
    return type(self), (self._id,)

  def observation_spec(self) -> specs.Array:
    return self._translation.observation_spec

  def action_spec(self) -> specs.Array:
    return self._translation.action_spec

  def start(
    self, counters: tf.Tensor, before: GymnaxCore | None
  ) -> tuple[GymnaxCore, tf.Tensor]:
    del before
    keys, counters = _next_keys(counters)
    *leaves, observation = self._translation.start(keys)
    return GymnaxCore(tuple(leaves), observation), counters

  def advance(
    self, core: GymnaxCore, action: tf.Tensor, counters: tf.Tensor
  ) -> environment.Advance:
    keys, counters = _next_keys(counters)
    *leaves, observation, reward, terminated, done = self._translation.advance(
      keys, *core.leaves, action
    )
    return environment.Advance(
      GymnaxCore(tuple(leaves), observation),
      reward,
      terminated=terminated,
      truncated=done & ~terminated,
      counters=counters,
    )

  def observe(self, core: GymnaxCore) -> tf.Tensor:
    return core.observation

  def initial_core(self, batch_size: int) -> GymnaxCore:
    # The shapes are known, so this compiles nothing.
    leaves = [
      tf.zeros([batch_size, *spec.shape], spec.dtype)
      for spec in self._translation.leaves
    ]
    spec = self._translation.observation_spec
    return GymnaxCore(
      tuple(leaves), tf.zeros([batch_size, *spec.shape], spec.dtype)
    )


class _Translation(NamedTuple):
  """A game as two functions of B rows, in TensorFlow.

  Attributes:
    start: Takes keys; the batched `_Game.start`.
    advance: Takes keys, leaves and an action; the batched `_Game.advance`.
    leaves: Specs of the leaves of a row's state.
    observation_spec: Observation spec of one row.
    action_spec: Action spec of one row.
  """

  start: Callable[..., list[tf.Tensor]]
  advance: Callable[..., list[tf.Tensor]]
  leaves: tuple[tf.TensorSpec, ...]
  observation_spec: specs.Array
  action_spec: specs.Array


class _Game:
  """A game as two functions of one row, in JAX.

  They take and return flat sequences of arrays, whose shapes and dtypes are
  always those of a new episode.

  Attributes:
    key: Placeholder of a random key, uint32 `[2]`.
    leaves: Placeholders of the leaves of the state.
    observation: Placeholder of an observation, int32 or float32.
    action: Placeholder of an action.
    action_space: Action space of gymnax.
    observation_space: Observation space of gymnax.
  """

  def __init__(self, jax: Any, id: str, game: Any, params: Any):
    self._id, self._jax, self._game, self._params = id, jax, game, params
    self._endless_params = params
    limit = getattr(params, 'max_steps_in_episode', None)
    if limit is not None:
      self._endless_params = params.replace(
        max_steps_in_episode=type(limit)(_NO_LIMIT)
      )
    self.action_space = game.action_space(params)
    self.observation_space = game.observation_space(params)
    self.key = jax.ShapeDtypeStruct((2,), np.uint32)
    observation, state = jax.eval_shape(
      lambda key: game.reset_env(key, params), self.key
    )
    if not isinstance(observation, jax.ShapeDtypeStruct):
      raise self.misfit('an observation of one array', observation)
    is_integer = np.issubdtype(observation.dtype, np.integer)
    self.observation = jax.ShapeDtypeStruct(
      observation.shape, np.int32 if is_integer else np.float32
    )
    self.leaves, self._structure = jax.tree_util.tree_flatten(state)
    is_discrete = hasattr(self.action_space, 'n')
    self.action = jax.ShapeDtypeStruct(
      self.action_space.shape, np.int32 if is_discrete else np.float32
    )

  def start(self, key: Any) -> list[Any]:
    """Returns the leaves and the observation."""
    observation, state = self._game.reset_env(key, self._params)
    return self._flatten(state, observation)

  def advance(self, key: Any, *inputs: Any) -> list[Any]:
    """Steps the game with leaves and an action.

    Returns:
      The leaves, the observation, the reward, whether the game ended as it
      would without a time limit, and whether it ended.
    """
    *leaves, action = inputs
    state = self._structure.unflatten(leaves)
    step = self._game.step_env
    observation, after, reward, done, _ = step(key, state, action, self._params)
    # The duplicate computations are eliminated before compilation. The terminal
    # flag of the state is no alternative: some games store that they ended.
    _, _, _, terminated, _ = step(key, state, action, self._endless_params)
    scalar = self._jax.ShapeDtypeStruct
    return [
      *self._flatten(after, observation),
      self._fit('reward', reward, scalar((), np.float32)),
      self._fit('done', terminated, scalar((), np.bool_)),
      self._fit('done', done, scalar((), np.bool_)),
    ]

  def _flatten(self, state: Any, observation: Any) -> list[Any]:
    leaves, structure = self._jax.tree_util.tree_flatten(state)
    if structure != self._structure:
      raise self.misfit(f'a state {self._structure}', structure)
    return [
      *(self._fit('state', *pair) for pair in zip(leaves, self.leaves)),
      self._fit('observation', observation, self.observation),
    ]

  def _fit(self, name: str, value: Any, like: Any) -> Any:
    """Casts to the shape and dtype, if no information is lost."""
    numpy = self._jax.numpy
    array = numpy.asarray(value)
    keeps = numpy.promote_types(array.dtype, like.dtype) == like.dtype
    if array.size != np.prod(like.shape, dtype=int) or not keeps:
      raise self.misfit(
        f'{name}: {like.dtype}{list(like.shape)}',
        f'{array.dtype}{list(array.shape)}',
      )
    return numpy.reshape(array.astype(like.dtype), like.shape)

  def misfit(self, expected: str, found: Any) -> argument_checks.ArgumentError:
    """Returns the error for a result that does not fit."""
    return argument_checks.ArgumentError(
      'id',
      f'{self._id!r} of gymnax does not fit a tensor environment: expected '
      f'{expected}, found {found}.',
    )


def _import_packages() -> tuple[Any, Any]:
  """Imports JAX and gymnax."""
  jax = extras.import_extra('jax', 'gymnax')
  # Before the import of gymnax, which initializes the devices.
  if not jax.config.jax_platforms:
    jax.config.update('jax_platforms', 'cpu')
  if jax.config.jax_platforms == 'cpu':
    # Avoids JAX's warning that it found no GPU.
    jax.config.update('jax_platform_name', 'cpu')
  with contextlib.suppress(ModuleNotFoundError):
    # Suppresses the deprecation notice of gym, which gymnax imports.
    importlib.import_module('gym_notices.notices').notices.clear()
  return jax, extras.import_extra('gymnax', 'gymnax')


def _make(gymnax: Any, id: str) -> tuple[Any, Any]:
  """Returns gymnax's game and its default parameters."""
  try:
    return gymnax.make(id)
  # Unfinished games, and those that load data.
  except (NotImplementedError, OSError, ValueError) as error:
    raise argument_checks.ArgumentError(
      'id', f'gymnax cannot make {id!r}: {type(error).__name__}: {error}'
    ) from error


# Compiles a game once per process, even if its actors, its evaluator and each
# slot make one.
@functools.cache
def _translate(jax: Any, gymnax: Any, id: str) -> _Translation:
  """Translates a game of gymnax to TensorFlow functions."""
  # Ignores deprecation warnings of JAX about gymnax's code.
  with quieting.ignored_warnings():
    game = _Game(jax, id, *_make(gymnax, id))
    spaces = importlib.import_module('gymnax.environments.spaces')
    return _Translation(
      _convert(jax, game.start, game.key),
      _convert(jax, game.advance, game.key, *game.leaves, game.action),
      tuple(
        tf.TensorSpec(leaf.shape, tf.as_dtype(leaf.dtype))
        for leaf in game.leaves
      ),
      _make_observation_spec(game, spaces),
      _make_action_spec(game, spaces),
    )


def _convert(
  jax: Any, function: Callable[..., list[Any]], *inputs: Any
) -> Callable[..., list[tf.Tensor]]:
  """Converts a function of one row in JAX to one of B rows in TensorFlow.

  Args:
    jax: The package.
    function: Takes and returns arrays.
    *inputs: Placeholders of its arguments.
  """
  jax2tf = extras.import_extra('jax.experimental.jax2tf', 'gymnax')
  partial_eval = importlib.import_module('jax.interpreters.partial_eval')
  traced = jax.make_jaxpr(function)(*inputs)
  # Eliminates dead code, half of some games: XLA would drop it, but
  # TensorFlow's graph is slow to build.
  needed, _ = partial_eval.dce_jaxpr(
    traced.jaxpr, [True] * len(traced.jaxpr.outvars), instantiate=True
  )
  of_row = jax.core.jaxpr_as_fun(jax.core.ClosedJaxpr(needed, traced.consts))
  converted = jax2tf.convert(
    jax.vmap(of_row), with_gradient=False, native_serialization=False
  )
  return tf.function(converted, autograph=False, jit_compile=True)


def _make_action_spec(game: _Game, spaces: Any) -> specs.Array:
  space = game.action_space
  if isinstance(space, spaces.Discrete):
    return specs.DiscreteArray(int(space.n), np.int32, 'action')
  is_box = isinstance(space, spaces.Box)
  if not is_box or not np.issubdtype(space.dtype, np.floating):
    raise game.misfit('actions that are Discrete or a Box of floats', space)
  low, high = (
    np.broadcast_to(np.asarray(bound, np.float32), space.shape)
    for bound in (space.low, space.high)
  )
  return specs.BoundedArray(space.shape, np.float32, low, high, 'action')


def _make_observation_spec(game: _Game, spaces: Any) -> specs.Array:
  space = game.observation_space
  if isinstance(space, spaces.Discrete):
    return specs.DiscreteArray(int(space.n), np.int32, 'observation')
  # Without bounds, because some games violate theirs.
  shape, dtype = game.observation.shape, game.observation.dtype
  return specs.Array(shape, dtype, 'observation')


def _next_keys(counters: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Draws a key of JAX for each row.

  Args:
    counters: uint64 `[B]`.

  Returns:
    uint32 `[B, 2]`, the high half of 64 bits first, and the counters after the
    draw.
  """
  bits, counters = random_streams.next_bits(counters)
  high = tf.bitwise.right_shift(bits, tf.constant(32, tf.uint64))
  low = tf.bitwise.bitwise_and(bits, tf.constant(2**32 - 1, tf.uint64))
  keys = tf.stack([tf.cast(high, tf.uint32), tf.cast(low, tf.uint32)], axis=-1)
  return keys, counters
