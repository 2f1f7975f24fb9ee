"""Interface of batched, purely functional environments in TensorFlow."""

import abc
from collections.abc import Sequence
from typing import Any, NamedTuple

import dm_env
import numpy as np
import tensorflow as tf
from dm_env import specs

from repertory.components.runtime import random_streams
from repertory.environments.batches import layout
from repertory.environments.batches.layout import Nest
from repertory.environments.values import argument_checks

_FIRST, _MID, _LAST = (int(step_type) for step_type in dm_env.StepType)

# Separates the random streams of environments from those of policies, which are
# numbered by environment, from 0.
_ENVIRONMENT_STREAM = 2**32


class State(NamedTuple):
  """State of B environments between two steps.

  Attributes:
    core: State of the game, a nest of tensors `[B, ...]`.
    counters: Position in the random stream of each row, uint64 `[B]`.
    ended: Rows that the next step restarts, bool `[B]`.
  """

  core: Nest
  counters: tf.Tensor
  ended: tf.Tensor


class Advance(NamedTuple):
  """Result of `advance`.

  Attributes:
    core: The next core, of the same structure, shapes and dtypes.
    reward: float32 `[B]`, finite.
    terminated: Whether each episode has terminated, bool `[B]`: discount 0.
    truncated: Whether each episode is cut off, bool `[B]`: discount 1, unless
      it terminated in the same step.
    counters: Counters after the draws of this step, uint64 `[B]`.
  """

  core: Nest
  reward: tf.Tensor
  terminated: tf.Tensor
  truncated: tf.Tensor
  counters: tf.Tensor


class TensorEnvironment(abc.ABC):
  """B environments of one kind, as pure functions of tensors.

  A game implements `start`, `advance` and `observe`, and two specs. From these,
  `reset` and `step` make a batch that restarts its rows as
  `vector_batch.VectorBatch` does: the step after a row's LAST restarts that row
  alone, ignores its action and returns FIRST, reward 0 and discount 1.

  All functions can be traced, within `tf.while_loop` and by XLA: they have no
  state and no side effects, and shapes are static. AutoGraph is off: choose
  between rows by `tf.where`, loop over tensors by `tf.while_loop`. Row b of a
  result depends on row b of the arguments only. Random numbers are drawn from
  the row's counter, by `components.runtime.random_streams`.

  For videos a game may have a `render`, which runs on the host and takes the
  core of one row, a nest of tensors `[1, ...]`: see
  `environments.rendering`.
  """

  @abc.abstractmethod
  def observation_spec(self) -> Nest:
    """Returns the nest of specs of one environment, in single precision."""

  @abc.abstractmethod
  def action_spec(self) -> Nest:
    """Returns the nest of specs of one environment, in single precision."""

  def reward_spec(self) -> specs.Array:
    """Returns the spec of one reward, a float32 without bounds."""
    return specs.Array((), np.float32, name='reward')

  def discount_spec(self) -> specs.BoundedArray:
    """Returns the spec of one discount, 0 or 1."""
    return specs.BoundedArray((), np.float32, 0, 1, name='discount')

  @abc.abstractmethod
  def start(
    self, counters: tf.Tensor, before: Nest | None
  ) -> tuple[Nest, tf.Tensor]:
    """Starts an episode in every row.

    Args:
      counters: uint64 `[B]`.
      before: Core at the end of the row's last episode, for games that keep
        something from it; at first the result of `initial_core`. None only
        while the structure of the core is determined.

    Returns:
      The core, and the counters after the draws.
    """

  @abc.abstractmethod
  def advance(self, core: Nest, action: Nest, counters: tf.Tensor) -> Advance:
    """Takes a step in every row.

    The results of rows that are restarted are discarded. Their arguments are
    the core at the end of the episode, and the valid action closest to 0.

    Args:
      core: Result of `start` or `advance`, a nest of tensors `[B, ...]`.
      action: Nest of tensors `[B, ...]` of the action spec's dtypes.
      counters: uint64 `[B]`.
    """

  @abc.abstractmethod
  def observe(self, core: Nest) -> Nest:
    """Returns the observation, a nest of tensors `[B, ...]` of the spec."""

  def initial_core(self, batch_size: int) -> Nest:
    """Returns the core that precedes the first episodes.

    Zeros, of the structure, shapes and dtypes of the result of `start`.
    """
    core, _ = self._start(tf.zeros([batch_size], tf.uint64), None)
    return tf.nest.map_structure(tf.zeros_like, core)

  def initial_state(self, counters: tf.Tensor) -> State:
    """Returns the state before the first reset, given `initial_counters`.

    A step from it does the same as `reset`, with any actions.
    """
    core = self.initial_core(counters.shape[0])
    return State(core, counters, tf.ones(counters.shape, tf.bool))

  def reset(self, state: State) -> tuple[State, dm_env.TimeStep]:
    """Starts an episode in every row, even if the last one has not ended.

    Returns:
      The next state, and a timestep as of `step`.

    Raises:
      ValueError: As by `step`.
    """
    core, counters = self._start(state.counters, state.core)
    _check_alike('Core of `start`', core, state.core)
    shape = counters.shape
    timestep = dm_env.TimeStep(
      tf.fill(shape, _FIRST),
      tf.zeros(shape, tf.float32),
      tf.ones(shape, tf.float32),
      self._observe(core, shape),
    )
    return State(core, counters, tf.zeros(shape, tf.bool)), timestep

  def step(self, state: State, action: Nest) -> tuple[State, dm_env.TimeStep]:
    """Steps every row, or restarts it if its episode has ended.

    Args:
      state: The state that the last step, or `initial_state`, returned.
      action: Nest of tensors `[B, ...]` of the action spec. Actions of ended
        rows are ignored; all others must be in range.

    Returns:
      The next state, and a timestep of tensors: `step_type` int32 `[B]`,
        `reward` and `discount` float32 `[B]`, and the observation.

    Raises:
      ValueError: While tracing, if results of the game have wrong shapes or
        dtypes.
    """
    first = state.ended  # [B]
    fresh, fresh_counters = self._start(state.counters, state.core)
    _check_alike('Core of `start`', fresh, state.core)
    # Valid actions in the rows that are restarted.
    idle = tf.nest.map_structure(
      lambda spec, leaf: tf.broadcast_to(
        layout.make_initial_action(spec), leaf.shape
      ),
      self.action_spec(),
      action,
    )
    action = _choose(first, idle, action)
    advance = self.advance(state.core, action, state.counters)
    core, reward, terminated, truncated, counters = _check_tuple(
      'advance', advance, Advance._fields
    )
    _check_alike('Core of `advance`', core, state.core)
    flags = tf.TensorSpec(first.shape, tf.bool)
    _check_alike(
      'Reward and ends of `advance`',
      [reward, terminated, truncated],
      [tf.TensorSpec(first.shape), flags, flags],
    )
    core = _choose(first, fresh, core)
    terminated = ~first & terminated
    last = terminated | (~first & truncated)
    timestep = dm_env.TimeStep(
      _MID - tf.cast(first, tf.int32) + tf.cast(last, tf.int32),
      tf.where(first, 0.0, reward),
      tf.where(terminated, 0.0, 1.0),
      self._observe(core, first.shape),
    )
    counters = tf.where(first, fresh_counters, counters)
    return State(core, counters, last), timestep

  def _start(self, counters: tf.Tensor, before: Nest | None) -> Any:
    found = self.start(counters, before)
    return _check_tuple('start', found, ('core', 'counters'))

  def _observe(self, core: Nest, rows: tf.TensorShape) -> Nest:
    observation = tf.nest.map_structure(
      tf.convert_to_tensor, self.observe(core)
    )
    expected = tf.nest.map_structure(
      lambda spec: tf.TensorSpec(rows.concatenate(spec.shape), spec.dtype),
      self.observation_spec(),
    )
    _check_alike('Observation of `observe`', observation, expected)
    return observation


class DerivedEnvironment(TensorEnvironment):
  """Base class of tensor environments with the specs of another environment.

  The other one is `host`, of any kind.
  """

  def __init__(self, host: Any):
    self._host = host

  def observation_spec(self) -> Nest:
    return self._host.observation_spec()

  def action_spec(self) -> Nest:
    return self._host.action_spec()

  def reward_spec(self) -> specs.Array:
    return self._host.reward_spec()


def initial_counters(seeds: Sequence[int]) -> tf.Tensor:
  """Returns the initial counters of environments, uint64 `[len(seeds)]`.

  Each depends on its own seed alone, an integer of at least 0.
  """
  checked = [argument_checks.check_integer('seed', seed, 0) for seed in seeds]
  initial = random_streams.initial_counters
  return tf.concat([initial(s, [_ENVIRONMENT_STREAM]) for s in checked], axis=0)


def _choose(rows: tf.Tensor, one: Nest, other: Nest) -> Nest:
  """Selects rows, bool `[B]`, of one nest, and all others of another."""

  def choose(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    return tf.where(tf.reshape(rows, [-1] + [1] * (len(a.shape) - 1)), a, b)

  return tf.nest.map_structure(choose, one, other)


def _check_tuple(function: str, found: Any, names: Sequence[str]) -> Any:
  """Returns the result of a function if it has the expected length."""
  if isinstance(found, tuple) and len(found) == len(names):
    return found
  what = f'{len(found)} of them' if isinstance(found, tuple) else repr(found)
  raise ValueError(
    f'`{function}` must return a tuple of {", ".join(names)}; got {what}.'
  )


def _check_alike(name: str, found: Nest, expected: Nest) -> None:
  """Compares structure, shapes and dtypes of tensors."""
  try:
    tf.nest.assert_same_structure(expected, found)
  except (TypeError, ValueError) as error:
    raise ValueError(f'{name}: {error}') from error
  for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(expected)):
    fits = other.shape.is_compatible_with(one.shape)
    if one.dtype != other.dtype or not fits:
      raise ValueError(
        f'{name}: expected {other.dtype.name} {other.shape}, found '
        f'{one.dtype.name} {one.shape}.'
      )
