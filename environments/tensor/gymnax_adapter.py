"""Environments of gymnax, translated from JAX to TensorFlow.

gymnax: https://github.com/RobertTLange/gymnax. JAX traces a game once, when it
is made; steps run without JAX.
"""

import functools
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from dm_env import specs

from repertory.components.runtime import random_streams
from repertory.environments.adapters import extras
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
    self._id = id
    # Ignores deprecation warnings of JAX about gymnax's code.
    with extras.ignored_warnings():
      self._game = _translate(*_import_packages(), id)

  def __reduce__(self):
    """Pickles the id alone, because traced functions cannot be pickled."""
    return type(self), (self._id,)

  def observation_spec(self) -> specs.Array:
    return self._game.observation_spec

  def action_spec(self) -> specs.Array:
    return self._game.action_spec

  def start(
    self, counters: tf.Tensor, before: GymnaxCore | None
  ) -> tuple[GymnaxCore, tf.Tensor]:
    del before
    keys, counters = _next_keys(counters)
    *leaves, observation = self._game.start(keys)
    return GymnaxCore(tuple(leaves), observation), counters

  def advance(
    self, core: GymnaxCore, action: tf.Tensor, counters: tf.Tensor
  ) -> environment.Advance:
    keys, counters = _next_keys(counters)
    *leaves, observation, reward, terminated, done = self._game.advance(
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
    *leaves, observation = (
      tf.zeros([batch_size, *spec.shape], spec.dtype)
      for spec in (*self._game.leaves, self._game.observation_spec)
    )
    return GymnaxCore(tuple(leaves), observation)


class _Translation:
  """A game of gymnax as two functions of B rows, in TensorFlow.

  `start` takes keys, and returns the leaves of the state and the observation.
  `advance` takes keys, leaves and an action; it also returns the reward,
  whether the game ended as it would without a time limit, and whether it ended.
  """

  def __init__(self, jax: Any, id: str, game: Any, params: Any):
    self._id, self._jax, self._game, self._params = id, jax, game, params
    self._endless_params = params
    limit = getattr(params, 'max_steps_in_episode', None)
    if limit is not None:
      self._endless_params = params.replace(
        max_steps_in_episode=type(limit)(_NO_LIMIT)
      )
    key = jax.ShapeDtypeStruct((2,), np.uint32)
    observation, state = jax.eval_shape(
      lambda key: game.reset_env(key, params), key
    )
    if not isinstance(observation, jax.ShapeDtypeStruct):
      raise self._misfit('an observation of one array', observation)
    self._leaves, self._structure = jax.tree_util.tree_flatten(state)
    self.leaves = [
      tf.TensorSpec(leaf.shape, tf.as_dtype(leaf.dtype))
      for leaf in self._leaves
    ]
    is_integer = np.issubdtype(observation.dtype, np.integer)
    space = game.observation_space(params)
    # Without bounds, because some games violate theirs.
    self.observation_spec: specs.Array = specs.Array(
      observation.shape, np.int32 if is_integer else np.float32, 'observation'
    )
    if hasattr(space, 'n'):
      self.observation_spec = specs.DiscreteArray(
        int(space.n), np.int32, 'observation'
      )
    self.action_spec = self._make_action_spec(game.action_space(params))
    action = jax.ShapeDtypeStruct(
      self.action_spec.shape, self.action_spec.dtype
    )
    self.start = _convert(jax, self._start, key)
    self.advance = _convert(jax, self._advance, key, *self._leaves, action)

  def _make_action_spec(self, space: Any) -> specs.Array:
    if hasattr(space, 'n'):
      return specs.DiscreteArray(int(space.n), np.int32, 'action')
    is_box = hasattr(space, 'low')
    if not is_box or not np.issubdtype(space.dtype, np.floating):
      raise self._misfit('actions that are Discrete or a Box of floats', space)
    low, high = (
      np.broadcast_to(np.asarray(bound, np.float32), space.shape)
      for bound in (space.low, space.high)
    )
    return specs.BoundedArray(space.shape, np.float32, low, high, 'action')

  def _start(self, key: Any) -> list[Any]:
    observation, state = self._game.reset_env(key, self._params)
    return self._flatten(state, observation)

  def _advance(self, key: Any, *inputs: Any) -> list[Any]:
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
      raise self._misfit(f'a state {self._structure}', structure)
    return [
      *(self._fit('state', *pair) for pair in zip(leaves, self._leaves)),
      self._fit('observation', observation, self.observation_spec),
    ]

  def _fit(self, name: str, value: Any, like: Any) -> Any:
    """Casts to the shape and dtype, if no information is lost."""
    numpy = self._jax.numpy
    array = numpy.asarray(value)
    keeps = numpy.promote_types(array.dtype, like.dtype) == like.dtype
    if array.size != np.prod(like.shape, dtype=int) or not keeps:
      raise self._misfit(
        f'{name}: {like.dtype}{list(like.shape)}',
        f'{array.dtype}{list(array.shape)}',
      )
    return numpy.reshape(array.astype(like.dtype), like.shape)

  def _misfit(self, expected: str, found: Any) -> argument_checks.ArgumentError:
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
  extras.silence_gym()  # gymnax imports it.
  return jax, extras.import_extra('gymnax', 'gymnax')


# Compiles a game once per process, even if its actors, its evaluator and each
# slot make one.
@functools.cache
def _translate(jax: Any, gymnax: Any, id: str) -> _Translation:
  argument_checks.check_known('id', id, gymnax.registered_envs)
  try:
    game, params = gymnax.make(id)
  # Unfinished games, and those that load data.
  except (NotImplementedError, OSError, ValueError) as error:
    raise argument_checks.ArgumentError(
      'id', f'gymnax cannot make {id!r}: {type(error).__name__}: {error}'
    ) from error
  return _Translation(jax, id, game, params)


def _convert(
  jax: Any, function: Callable[..., list[Any]], *inputs: Any
) -> Callable[..., list[tf.Tensor]]:
  """Converts a function of one row in JAX to one of B rows in TensorFlow."""
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


def _next_keys(counters: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Draws a key of JAX for each row: uint32 `[B, 2]`, the high half first."""
  bits, counters = random_streams.next_bits(counters)
  high = tf.bitwise.right_shift(bits, tf.constant(32, tf.uint64))
  low = tf.bitwise.bitwise_and(bits, tf.constant(2**32 - 1, tf.uint64))
  keys = tf.stack([tf.cast(high, tf.uint32), tf.cast(low, tf.uint32)], axis=-1)
  return keys, counters
