"""MinAtar's Seaquest in TensorFlow: rescue divers, shoot, surface for air."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from repertory.environments.tensor.minatar import game
from repertory.environments.tensor.minatar import seaquest_things as things
from repertory.environments.tensor.minatar.game import LAST, SIZE

_MAX_OXYGEN = 200
_FIRE_PAUSE = 5
_DIVER_PERIOD = 30
_SPAWN_PERIOD = 20
_MOVE_PERIOD = 5
_SHORTEST_MOVE_PERIOD = 2
_LOWEST_ROW = 8


class SeaquestState(NamedTuple):
  """State of the game, int32 `[B]` unless stated otherwise."""

  x: tf.Tensor  # Column of the submarine's front.
  y: tf.Tensor  # Row of the submarine, 0 at the surface.
  step: tf.Tensor  # Direction of the submarine, 1 right or -1 left.
  at_surface: tf.Tensor  # Whether it has surfaced already, bool.
  oxygen: tf.Tensor  # Steps that it can stay below the surface.
  # Divers aboard; as in MinAtar, negative after six were rescued.
  held: tf.Tensor
  fire_wait: tf.Tensor  # Steps until it can fire.
  bullets: things.Bullets  # The submarine's bullets.
  divers: things.Divers  # Divers in the water.
  diver_wait: tf.Tensor  # Steps until the next diver comes.
  enemies: things.Enemies  # Fish and submarines.
  # Number of enemies so far, modulo the number of entries.
  num_spawned: tf.Tensor
  spawn_wait: tf.Tensor  # Steps until the next enemy comes.
  spawn_period: tf.Tensor  # Steps between two arrivals of enemies.
  move_period: tf.Tensor  # Steps between two moves of an enemy.
  ramps: tf.Tensor  # Number of difficulty increases.
  shots: things.Bullets  # Bullets of the enemies.


class Seaquest(game.Game):
  """Move the submarine in four directions and fire ahead.

  Reward: 1 for each enemy hit, and up to 10 for the remaining oxygen when six
  divers are rescued. Surfacing with fewer costs one of them, and refills the
  oxygen, too; each time enemies come more often, or move faster. The game is
  over when an enemy or a bullet touches the submarine, when the oxygen is used
  up, or when it surfaces without divers.

  Channels: front and back of the submarine, its bullets, the field behind a
  swimmer, the enemies' bullets, fish, enemy submarines, gauges of oxygen and of
  divers aboard, divers.
  """

  num_channels = 10
  useful_moves = tuple(range(6))
  # Direction, kind and row of an enemy; direction and row of a diver.
  draws_per_step = 5

  def _begin(self, draws: tf.Tensor) -> SeaquestState:
    size = draws.shape[0]

    def fill(value: int) -> tf.Tensor:
      return tf.fill([size], value)

    pair = tf.zeros([size, 2], tf.int32)
    slots = tf.zeros([size, things.NUM_ENEMIES], tf.int32)
    unarmed = tf.zeros_like(slots, tf.bool)
    return SeaquestState(
      x=fill(5),
      y=fill(0),
      step=fill(-1),
      at_surface=tf.ones([size], tf.bool),
      oxygen=fill(_MAX_OXYGEN),
      held=fill(0),
      fire_wait=fill(0),
      bullets=things.Bullets(pair, pair, pair),
      divers=things.Divers(pair, pair, pair, pair),
      diver_wait=fill(_DIVER_PERIOD),
      enemies=things.Enemies(slots, slots, slots, unarmed, slots, slots),
      num_spawned=fill(0),
      spawn_wait=fill(_SPAWN_PERIOD),
      spawn_period=fill(_SPAWN_PERIOD),
      move_period=fill(_MOVE_PERIOD),
      ramps=fill(0),
      shots=things.Bullets(slots, slots, slots),
    )

  def _play(
    self, state: SeaquestState, move: tf.Tensor, draws: tf.Tensor
  ) -> tuple[SeaquestState, tf.Tensor, tf.Tensor]:
    state = _steer(_spawn(state, draws), move)
    x, y = state.x, state.y
    bullets, enemies, hits = things.fly(state.bullets, state.enemies)
    divers, held = things.rescue(state.divers, x, y, state.held)
    enemies, bullets, more_hits, touched, all_enemies = things.swim(
      enemies, bullets, x, y, state.move_period
    )
    shots, shot_wait, shot = things.shoot(state.shots, all_enemies, x, y)
    state = state._replace(
      bullets=bullets,
      enemies=enemies._replace(shot_wait=shot_wait),
      divers=divers,
      held=held,
      shots=shots,
    )
    state, bonus, suffocated = _breathe(state, self._ramping)
    over = touched | shot | suffocated
    return state, hits + more_hits + bonus, over

  def _show(self, state: SeaquestState) -> list[tf.Tensor]:
    fish, enemy_submarines, trails, shots = things.paint(
      state.enemies, state.shots
    )
    divers = state.divers
    swims = tf.not_equal(divers.step, 0)
    behind = divers.x - divers.step  # [B, 2]
    has_trail = swims & tf.equal(behind, tf.clip_by_value(behind, 0, LAST))
    columns = tf.range(SIZE)
    oxygen = tf.maximum(state.oxygen, 0) * SIZE // _MAX_OXYGEN
    aboard = (columns >= LAST - state.held[:, None]) & (columns < LAST)
    bullets = state.bullets
    return [
      game.mark(state.x, state.y),
      game.mark(state.x - state.step, state.y),
      _paint(bullets.x, bullets.y, tf.not_equal(bullets.step, 0)),
      trails | _paint(behind, divers.y, has_trail),
      shots,
      fish,
      enemy_submarines,
      _paint_gauge(columns < oxygen[:, None]),
      _paint_gauge(aboard),
      _paint(divers.x, divers.y, swims),
    ]


def _spawn(state: SeaquestState, draws: tf.Tensor) -> SeaquestState:
  """Adds the enemies and divers that are due."""
  comes = tf.equal(state.spawn_wait, 0)
  enemies, came = things.add_enemy(
    state.enemies,
    state.num_spawned,
    comes,
    y=1 + game.pick(draws[:, 2], things.NUM_ROWS),
    step=tf.where(draws[:, 0] < 1 / 2, 1, -1),
    armed=draws[:, 1] < 1 / 3,
    period=state.move_period,
  )
  diver_comes = tf.equal(state.diver_wait, 0)
  step = tf.where(draws[:, 3] < 1 / 2, 1, -1)
  divers = things.append(
    state.divers,
    diver_comes,
    things.side(step),
    1 + game.pick(draws[:, 4], things.NUM_ROWS),
    step,
    tf.fill(step.shape, things.DIVER_PERIOD),
  )
  num_spawned = (state.num_spawned + game.to_int(came)) % things.NUM_ENEMIES
  wait = tf.where(comes, state.spawn_period, state.spawn_wait)
  diver_wait = tf.where(diver_comes, _DIVER_PERIOD, state.diver_wait)
  return state._replace(
    enemies=enemies,
    num_spawned=num_spawned,
    spawn_wait=tf.maximum(wait - 1, 0),
    divers=divers,
    diver_wait=tf.maximum(diver_wait - 1, 0),
  )


def _steer(state: SeaquestState, move: tf.Tensor) -> SeaquestState:
  """Moves the submarine, or fires if it can."""
  fires = tf.equal(move, game.FIRE) & tf.equal(state.fire_wait, 0)
  left, right = tf.equal(move, game.LEFT), tf.equal(move, game.RIGHT)
  up, down = tf.equal(move, game.UP), tf.equal(move, game.DOWN)
  wait = tf.where(fires, _FIRE_PAUSE, state.fire_wait)
  return state._replace(
    x=game.shift(state.x, left, right),
    y=game.shift(state.y, up, down, maximum=_LOWEST_ROW),
    step=tf.where(left, -1, tf.where(right, 1, state.step)),
    bullets=things.append(state.bullets, fires, state.x, state.y, state.step),
    fire_wait=tf.maximum(wait - 1, 0),
  )


def _breathe(
  state: SeaquestState, ramping: bool
) -> tuple[SeaquestState, tf.Tensor, tf.Tensor]:
  """Consumes oxygen below the surface, and refills it when surfacing.

  Returns:
    The state, the reward for six divers, and whether the game is over.
  """
  below = state.y > 0
  surfaces = ~below & ~state.at_surface
  over = (state.oxygen <= 0) | (surfaces & tf.equal(state.held, 0))
  surfaces &= tf.not_equal(state.held, 0)
  full = surfaces & tf.equal(state.held, things.MAX_DIVERS)
  bonus = tf.where(full, state.oxygen * SIZE // _MAX_OXYGEN, 0)
  # A diver is also taken off after six were rescued, which leaves -1.
  held = tf.where(full, 0, state.held) - game.to_int(surfaces)
  oxygen = tf.where(surfaces, _MAX_OXYGEN, state.oxygen - game.to_int(below))
  state = state._replace(
    held=held, oxygen=oxygen, at_surface=~below & (state.at_surface | surfaces)
  )
  return (_ramp(state, surfaces) if ramping else state), bonus, over


def _ramp(state: SeaquestState, surfaces: tf.Tensor) -> SeaquestState:
  """Increases the difficulty where `surfaces`, bool `[B]`."""
  ramps = (state.move_period > _SHORTEST_MOVE_PERIOD) | (state.spawn_period > 1)
  return state._replace(
    **game.speed_up(
      state.move_period,
      state.spawn_period,
      state.ramps,
      surfaces & ramps,
      _SHORTEST_MOVE_PERIOD,
    )
  )


def _paint(x: tf.Tensor, y: tf.Tensor, shown: tf.Tensor) -> tf.Tensor:
  """Returns boards that mark two objects, bool `[B, 10, 10]`."""
  place = tf.where(shown, y * SIZE + x, -1)  # [B, 2]
  places = np.arange(SIZE * SIZE, dtype=np.int32).reshape(SIZE, SIZE)
  first, second = (place[:, i, None, None] for i in range(2))
  return tf.equal(first, places) | tf.equal(second, places)


def _paint_gauge(columns: tf.Tensor) -> tf.Tensor:
  """Returns boards that mark columns of the last row, bool `[B, 10, 10]`."""
  return tf.pad(columns[:, None, :], [[0, 0], [LAST, 0], [0, 0]])
