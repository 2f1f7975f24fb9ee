"""The environments of gymnax, translated from JAX to TensorFlow.

gymnax: https://github.com/RobertTLange/gymnax. JAX traces a game once, when it
is made, and has no part in its steps.
"""

import contextlib
import functools
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from dm_env import specs

from repertory.components import random_streams
from repertory.environments import close_names, extras, quieting
from repertory.environments.argument_checks import ArgumentError
from repertory.environments.tensor import environment

# Instead of a time limit. As an int32 or a float32 it is exact.
_NO_LIMIT = 2**30


class Core(NamedTuple):
  """What gymnax keeps of B games.

  Attributes:
    leaves: The parts of its state, tensors `[B, ...]`.
    observation: The last one, `[B, ...]`; part of the core since some games
      draw it, and some show what was before the step.
  """

  leaves: tuple[tf.Tensor, ...]
  observation: tf.Tensor


class Gymnax(environment.TensorEnvironment):
  """A registered game with its default parameters.

  Each step is gymnax's `step_env`, which restarts nothing, with a key drawn
  from the row's counter. An end that would also come without a time limit is a
  termination, any other a truncation; gymnax itself does not tell them apart.

  XLA compiles the steps wherever they run, for TensorFlow has no other kernels
  of some of their operations.
  """

  def __init__(self, id: str):
    """Traces the game.

    If JAX has not been told which platforms to use, it uses the CPU alone from
    now on: the memory of a GPU is TensorFlow's.

    Args:
      id: Such as 'CartPole-v1' or 'Breakout-MinAtar'.

    Raises:
      ImportError: If gymnax is not installed.
      ArgumentError: If there is no such game, if gymnax cannot make it, or if
        what it gives does not fit a tensor environment.
    """
    jax, gymnax = _import_packages()
    close_names.check('id', id, gymnax.registered_envs)
    self._id = id
    self._translation = _translate(jax, gymnax, id)

  def __reduce__(self):
    """Keeps the id alone, for what is traced cannot be pickled."""
    return type(self), (self._id,)

  def observation_spec(self) -> specs.Array:
    return self._translation.observation_spec

  def action_spec(self) -> specs.Array:
    return self._translation.action_spec

  def start(
    self, counters: tf.Tensor, before: Core | None
  ) -> tuple[Core, tf.Tensor]:
    del before
    keys, counters = _next_keys(counters)
    *leaves, observation = self._translation.start(keys)
    return Core(tuple(leaves), observation), counters

  def advance(
    self, core: Core, action: tf.Tensor, counters: tf.Tensor
  ) -> environment.Advance:
    keys, counters = _next_keys(counters)
    *leaves, observation, reward, terminated, done = self._translation.advance(
      keys, *core.leaves, action
    )
    return environment.Advance(
      Core(tuple(leaves), observation),
      reward,
      terminated=terminated,
      truncated=done & ~terminated,
      counters=counters,
    )

  def observe(self, core: Core) -> tf.Tensor:
    return core.observation

  def initial_core(self, batch_size: int) -> Core:
    # As the shapes are known, nothing has to be compiled for this.
    leaves = [
      tf.zeros([batch_size, *spec.shape], spec.dtype)
      for spec in self._translation.leaves
    ]
    spec = self._translation.observation_spec
    return Core(tuple(leaves), tf.zeros([batch_size, *spec.shape], spec.dtype))


class _Translation(NamedTuple):
  """A game as two functions of B rows, in TensorFlow.

  Attributes:
    start: Takes keys; gives what `_Game.start` gives of a row.
    advance: Takes keys, leaves and an action; gives what `_Game.advance` gives.
    leaves: The specs of the parts of a row's state.
    observation_spec: That of one row.
    action_spec: That of one row.
  """

  start: Callable[..., list[tf.Tensor]]
  advance: Callable[..., list[tf.Tensor]]
  leaves: tuple[tf.TensorSpec, ...]
  observation_spec: specs.Array
  action_spec: specs.Array


class _Game:
  """A game as two functions of one row, in JAX.

  They take and give plain sequences of arrays, always of the same shapes and
  dtypes: those that a new episode has.

  Attributes:
    key: What stands for a random key, uint32 `[2]`.
    leaves: What stands for the parts of the state.
    observation: What stands for an observation, int32 or float32.
    action: What stands for an action.
    action_space: gymnax's.
    observation_space: gymnax's.
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
    """Takes leaves and an action.

    Returns:
      The leaves, the observation, the reward, whether the game ended as it
      would without a time limit, and whether it ended.
    """
    *leaves, action = inputs
    state = self._structure.unflatten(leaves)
    step = self._game.step_env
    observation, after, reward, done, _ = step(key, state, action, self._params)
    # What is computed twice by this is dropped before it is compiled. The end
    # of a state cannot be asked for instead: some keep that they ended.
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
    """Returns an array of the shape and dtype, if nothing is lost by that."""
    numpy = self._jax.numpy
    array = numpy.asarray(value)
    keeps = numpy.promote_types(array.dtype, like.dtype) == like.dtype
    if array.size != np.prod(like.shape, dtype=int) or not keeps:
      raise self.misfit(
        f'{name}: {like.dtype}{list(like.shape)}',
        f'{array.dtype}{list(array.shape)}',
      )
    return numpy.reshape(array.astype(like.dtype), like.shape)

  def misfit(self, expected: str, found: Any) -> ArgumentError:
    """Returns the error that says what does not fit."""
    return ArgumentError(
      'id',
      f'{self._id!r} of gymnax does not fit a tensor environment: expected '
      f'{expected}, found {found}.',
    )


def _import_packages() -> tuple[Any, Any]:
  """Returns JAX and gymnax."""
  jax = extras.import_extra('jax', 'gymnax')
  # Before anything asks for devices; gymnax does so when it is imported.
  if not jax.config.jax_platforms:
    jax.config.update('jax_platforms', 'cpu')
  if jax.config.jax_platforms == 'cpu':
    # Otherwise JAX warns that it has found no GPU.
    jax.config.update('jax_platform_name', 'cpu')
  with contextlib.suppress(ModuleNotFoundError):
    # What gym, which gymnax imports, would print of its age.
    importlib.import_module('gym_notices.notices').notices.clear()
  return jax, extras.import_extra('gymnax', 'gymnax')


def _make(gymnax: Any, id: str) -> tuple[Any, Any]:
  """Returns gymnax's game and its default parameters."""
  try:
    return gymnax.make(id)
  # The games that it has not finished, and those that load data.
  except (NotImplementedError, OSError, ValueError) as error:
    raise ArgumentError(
      'id', f'gymnax cannot make {id!r}: {type(error).__name__}: {error}'
    ) from error


# A game is compiled once, however often a process makes it: for its actors, its
# evaluator, or one slot after another.
@functools.cache
def _translate(jax: Any, gymnax: Any, id: str) -> _Translation:
  """Returns a game of gymnax as functions in TensorFlow."""
  # Of what gymnax writes and JAX might refuse one day.
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
  """Returns a function of one row, in JAX, as one of B rows in TensorFlow.

  Args:
    jax: The package.
    function: Takes and gives arrays.
    *inputs: What stands for those that it takes.
  """
  jax2tf = extras.import_extra('jax.experimental.jax2tf', 'gymnax')
  partial_eval = importlib.import_module('jax.interpreters.partial_eval')
  traced = jax.make_jaxpr(function)(*inputs)
  # Half of some games would otherwise be translated in vain: XLA drops what
  # nobody uses, but TensorFlow's graph is slow to make.
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
  # Without bounds, for not all keep to those that they tell.
  shape, dtype = game.observation.shape, game.observation.dtype
  return specs.Array(shape, dtype, 'observation')


def _next_keys(counters: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Draws a key of JAX for each row.

  Args:
    counters: uint64 `[B]`.

  Returns:
    uint32 `[B, 2]`, the high half of 64 bits first, and the counters to go on
    with.
  """
  bits, counters = random_streams.next_bits(counters)
  high = tf.bitwise.right_shift(bits, tf.constant(32, tf.uint64))
  low = tf.bitwise.bitwise_and(bits, tf.constant(2**32 - 1, tf.uint64))
  keys = tf.stack([tf.cast(high, tf.uint32), tf.cast(low, tf.uint32)], axis=-1)
  return keys, counters
