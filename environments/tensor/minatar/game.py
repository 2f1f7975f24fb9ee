"""Base class of the MinAtar games: sticky actions, boards, rendering."""

import abc
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf
from dm_env import specs

from repertory.components.runtime import random_streams
from repertory.environments.rendering import drawing
from repertory.environments.tensor import environment

# Rows and columns of the square boards.
SIZE = 10
LAST = SIZE - 1
# MinAtar's moves; the agent's actions are all, or some of them.
STAY, LEFT, UP, RIGHT, DOWN, FIRE = range(6)

# Leaf of a game's state: a tensor `[B, ...]`, or in the result of `_begin` also
# one value for all rows.
Leaf: TypeAlias = Any


class GameCore(NamedTuple):
  """Complete state of a game, tensors `[B, ...]`."""

  state: Any  # The game's own state.
  # The last move, int32 `[B]`. As in MinAtar, it persists across episodes.
  move: tf.Tensor


class Game(environment.TensorEnvironment):
  """MinAtar game in TensorFlow, by the rules of the package `minatar`.

  An observation is a board, float32 `[10, 10, C]` of 0 and 1. Episodes end with
  discount 0 only. See https://arxiv.org/abs/1903.03176. Oddities of the
  package's rules are kept: given the same random draws, a game matches it step
  by step.

  Subclasses define the initial state, the effect of a move, and the board. They
  draw a fixed number of random numbers, so that the rows stay in step.

  Attributes:
    num_channels: C, the number of kinds of objects on the board.
    useful_moves: Moves that have an effect.
    draws_at_start: Number of random draws at the start of an episode.
    draws_per_step: Number of random draws per move.
  """

  num_channels: ClassVar[int]
  useful_moves: ClassVar[tuple[int, ...]]
  draws_at_start: ClassVar[int] = 0
  draws_per_step: ClassVar[int] = 0

  render_fps = 20

  def __init__(
    self,
    sticky_actions: float = 0.1,
    full_actions: bool = True,
    ramping: bool = True,
  ):
    """Sets the rules.

    Args:
      sticky_actions: Probability that a step repeats the last move.
      full_actions: Whether to use all six moves, also those without effect.
      ramping: Whether the difficulty increases over time; Breakout and Freeway
        ignore it.
    """
    self._sticky_actions = sticky_actions
    self._moves = tuple(range(6)) if full_actions else self.useful_moves
    self._ramping = ramping

  def observation_spec(self) -> specs.BoundedArray:
    shape = (SIZE, SIZE, self.num_channels)
    return specs.BoundedArray(shape, np.float32, 0, 1, 'board')

  def action_spec(self) -> specs.DiscreteArray:
    return specs.DiscreteArray(len(self._moves), np.int32, 'action')

  def start(
    self, counters: tf.Tensor, before: GameCore | None
  ) -> tuple[GameCore, tf.Tensor]:
    draws, counters = random_streams.next_uniform_vectors(
      counters, self.draws_at_start
    )
    state = tf.nest.map_structure(
      lambda leaf: (
        leaf
        if tf.is_tensor(leaf)
        else tf.broadcast_to(leaf, [*counters.shape, *np.shape(leaf)])
      ),
      self._begin(draws),
    )
    move = tf.zeros(counters.shape, tf.int32) if before is None else before.move
    return GameCore(state, move), counters

  def advance(
    self, core: GameCore, action: tf.Tensor, counters: tf.Tensor
  ) -> environment.Advance:
    draws, counters = random_streams.next_uniform_vectors(
      counters, 1 + self.draws_per_step
    )
    move = tf.gather(tf.constant(self._moves), action)  # [B]
    move = tf.where(draws[:, 0] < self._sticky_actions, core.move, move)
    state, reward, over = self._play(core.state, move, draws[:, 1:])
    return environment.Advance(
      GameCore(state, move),
      tf.cast(reward, tf.float32),
      terminated=over,
      truncated=tf.zeros_like(over),
      counters=counters,
    )

  def observe(self, core: GameCore) -> tf.Tensor:
    channels = [
      tf.reshape(tf.cast(channel, tf.float32), [-1, SIZE, SIZE])
      for channel in self._show(core.state)
    ]
    return tf.stack(channels, axis=-1)  # [B, 10, 10, C]

  def render(self, core: GameCore) -> np.ndarray:
    """Renders the board in MinAtar's colors, uint8 `[10, 10, 3]`."""
    return drawing.draw_channels(self.observe(core)[0].numpy())

  @abc.abstractmethod
  def _begin(self, draws: tf.Tensor) -> Any:
    """Returns the state at the start of an episode.

    Leaves are tensors `[B, ...]`, or one value for all rows. The draws are
    float32 `[B, draws_at_start]` in [0, 1).
    """

  @abc.abstractmethod
  def _play(
    self, state: Any, move: tf.Tensor, draws: tf.Tensor
  ) -> tuple[Any, tf.Tensor, tf.Tensor]:
    """Makes a move, int32 `[B]`; draws are `[B, draws_per_step]`.

    Returns:
      The next state; the reward, `[B]` of any numeric dtype; and whether the
      game is over, bool `[B]`.
    """

  @abc.abstractmethod
  def _show(self, state: Any) -> list[tf.Tensor]:
    """Returns C boards, each of 100 numbers or booleans, row by row."""


def to_int(flags: tf.Tensor) -> tf.Tensor:
  """Casts booleans to int32."""
  return tf.cast(flags, tf.int32)


def count_down(
  wait: tf.Tensor, due: tf.Tensor, period: tf.Tensor | int
) -> tf.Tensor:
  """Counts steps down to 0, from a period on where it is due."""
  return tf.maximum(tf.where(due, period, wait) - 1, 0)


def move_sideways(x: tf.Tensor, move: tf.Tensor) -> tf.Tensor:
  """Moves a column `[B]` by one field where the move is LEFT or RIGHT."""
  step = to_int(tf.equal(move, RIGHT)) - to_int(tf.equal(move, LEFT))
  return tf.clip_by_value(x + step, 0, LAST)


def move_vertically(
  y: tf.Tensor, move: tf.Tensor, highest: int = 0, lowest: int = LAST
) -> tf.Tensor:
  """Moves a row `[B]` by one field where the move is UP or DOWN."""
  step = to_int(tf.equal(move, DOWN)) - to_int(tf.equal(move, UP))
  return tf.clip_by_value(y + step, highest, lowest)


def mark(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  """Returns boards, float32 `[..., 100]`, that are 1 at one field only.

  A row outside the board gives zeros.
  """
  return tf.one_hot(y * SIZE + x, SIZE * SIZE)


def pad_lanes(lanes: tf.Tensor) -> tf.Tensor:
  """Adds the rows above and below the lanes `[B, 8, 10]`."""
  return tf.pad(lanes, [[0, 0], [1, 1], [0, 0]])


def can_speed_up(state: Any, shortest_move: int) -> tf.Tensor:
  """Returns whether the difficulty can increase, bool `[B]`."""
  return (state.move_period > shortest_move) | (state.spawn_period > 1)


def speed_up(state: Any, due: tf.Tensor, shortest_move: int) -> Any:
  """Increases the difficulty where due; move periods only every other time."""
  faster = due & (state.move_period > shortest_move)
  faster &= tf.equal(state.ramps % 2, 1)
  more = due & (state.spawn_period > 1)
  return state._replace(
    move_period=state.move_period - to_int(faster),
    spawn_period=state.spawn_period - to_int(more),
    ramps=state.ramps + to_int(due),
  )


def pick(draw: tf.Tensor, count: tf.Tensor | int) -> tf.Tensor:
  """Maps a number in [0, 1) to a random integer from 0 to `count` - 1."""
  # Rounding never gives `count`: draws and products have 24 bits.
  return tf.cast(draw * tf.cast(count, tf.float32), tf.int32)
