"""MinAtar's Seaquest in TensorFlow: rescue divers, shoot, surface for air.

Each kind of moving object has a fixed number of entries, more than can be in
use at once. MinAtar keeps them in lists, whose order decides a few cases; here
that order follows from the index of the entries, or from their age.
"""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from repertory.environments.tensor.minatar import game
from repertory.environments.tensor.minatar.game import LAST, SIZE

_MAX_OXYGEN = 200
_FIRE_PAUSE = 5
_DIVER_PERIOD = 30
_SPAWN_PERIOD = 20
_MOVE_PERIOD = 5
_SHORTEST_MOVE_PERIOD = 2
_LOWEST_ROW = 8
# Enemies and divers come on rows 1 to 8.
_NUM_ROWS = 8
# An enemy lives for at most 29 steps at the smallest period, when one may come
# each step, and for 60 at the largest, when at most one comes in 14 steps.
_NUM_ENEMIES = 32
_SHOT_PERIOD = 10
_DIVER_MOVE_PERIOD = 5
_MAX_DIVERS = 6
_NO_TARGET = 1000
_ROWS = np.arange(1, 1 + _NUM_ROWS, dtype=np.int32)
# Each row is packed into a word: bits per column, and their offsets.
_BITS = 6
_WORD = tf.int64
_MASKS = [(2**_BITS - 1) << (_BITS * x) for x in range(SIZE)]


class Bullets(NamedTuple):
  """Bullets of the submarine, the older one first, or of the enemies.

  int32 `[B, 2]` or `[B, 32]`, those of the enemies at the same indices. A
  bullet leaves the board before its entry is needed again.
  """

  x: game.Leaf  # Column.
  y: game.Leaf  # Row.
  step: game.Leaf  # Direction, 1 right or -1 left; 0 in an empty entry.


class Divers(NamedTuple):
  """As `Bullets`, `[B, 2]`; one leaves the board before two others came."""

  x: game.Leaf
  y: game.Leaf
  step: game.Leaf
  wait: game.Leaf  # Steps until it moves.


class Enemies(NamedTuple):
  """Fish and submarines: as `Bullets`, `[B, 32]`.

  Two enemies of one kind on the same field never move in the same step, because
  they came one after the other.
  """

  x: game.Leaf
  y: game.Leaf
  step: game.Leaf
  armed: game.Leaf  # Whether it is a submarine, bool.
  move_wait: game.Leaf  # Steps until it moves, int32.
  shot_wait: game.Leaf  # Steps until it shoots if it is a submarine, int32.


class SeaquestState(NamedTuple):
  """State of the game, int32 `[B]` unless stated otherwise."""

  x: game.Leaf  # Column of the submarine's front.
  y: game.Leaf  # Row of the submarine, 0 at the surface.
  step: game.Leaf  # Direction of the submarine, 1 right or -1 left.
  at_surface: game.Leaf  # Whether it has surfaced already, bool.
  oxygen: game.Leaf  # Steps that it can stay below the surface.
  # Divers aboard; as in MinAtar, negative after six were rescued.
  held: game.Leaf
  fire_wait: game.Leaf  # Steps until it can fire.
  bullets: Bullets  # The submarine's bullets.
  divers: Divers  # Divers in the water.
  diver_wait: game.Leaf  # Steps until the next diver comes.
  enemies: Enemies  # Fish and submarines.
  num_spawned: game.Leaf  # Number of enemies so far, modulo the entries.
  spawn_wait: game.Leaf  # Steps until the next enemy comes.
  spawn_period: game.Leaf  # Steps between two arrivals of enemies.
  move_period: game.Leaf  # Steps between two moves of an enemy.
  ramps: game.Leaf  # Number of difficulty increases.
  shots: Bullets  # Bullets of the enemies.


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
    del draws
    pair = np.zeros(2, np.int32)
    slots = np.zeros(_NUM_ENEMIES, np.int32)
    return SeaquestState(
      x=5,
      y=0,
      step=-1,
      at_surface=True,
      oxygen=_MAX_OXYGEN,
      held=0,
      fire_wait=0,
      bullets=Bullets(pair, pair, pair),
      divers=Divers(pair, pair, pair, pair),
      diver_wait=_DIVER_PERIOD,
      enemies=Enemies(slots, slots, slots, slots > 0, slots, slots),
      num_spawned=0,
      spawn_wait=_SPAWN_PERIOD,
      spawn_period=_SPAWN_PERIOD,
      move_period=_MOVE_PERIOD,
      ramps=0,
      shots=Bullets(slots, slots, slots),
    )

  def _play(
    self, state: SeaquestState, move: tf.Tensor, draws: tf.Tensor
  ) -> tuple[SeaquestState, tf.Tensor, tf.Tensor]:
    state = _steer(_spawn(state, draws), move)
    x, y, enemies = state.x, state.y, state.enemies
    bullets = _advance(state.bullets)
    # The younger bullet moves first. It hits a fish before a submarine, and the
    # older of two enemies, which also moves first.
    order = enemies.move_wait + tf.where(enemies.armed, _NO_TARGET // 2, 0)
    bullets, enemies, hits = _hit(bullets, enemies, (1, 0), True, order)
    divers, held = _rescue(state.divers, x, y, state.held)

    # The enemies swim, possibly into bullets, of which the older hits first. At
    # most one enters a field per step.
    touched = _are_at(enemies, x, y)
    moves = tf.not_equal(enemies.step, 0) & tf.equal(enemies.move_wait, 0)
    # Those that are hit or leave the board in this step still shoot.
    shooters = enemies._replace(
      x=tf.where(moves, enemies.x + enemies.step, enemies.x),
      move_wait=tf.where(
        moves, state.move_period[:, None], enemies.move_wait - 1
      ),
    )
    enemies = _keep_inside(shooters)
    touching = _are_at(enemies, x, y)
    bullets, enemies, more_hits = _hit(
      bullets, enemies, (0, 1), moves & ~touching
    )

    shoots = tf.not_equal(shooters.step, 0) & shooters.armed
    shoots &= tf.equal(shooters.shot_wait, 0)
    before = Bullets(
      *(tf.where(shoots, *pair) for pair in zip(shooters[:3], state.shots))
    )
    shots = _advance(before)
    touched |= touching | _are_at(before, x, y) | _are_at(shots, x, y)
    shot_wait = tf.where(shoots, _SHOT_PERIOD, shooters.shot_wait - 1)
    state = state._replace(
      bullets=bullets,
      enemies=enemies._replace(shot_wait=shot_wait),
      divers=divers,
      held=held,
      shots=shots,
    )
    state, bonus, suffocated = _breathe(state, self._ramping)
    over = tf.reduce_any(touched, axis=1) | suffocated
    return state, hits + more_hits + bonus, over

  def _show(self, state: SeaquestState) -> list[tf.Tensor]:
    bullets, divers, enemies = state.bullets, state.divers, state.enemies
    shots = state.shots
    present, swims = (tf.not_equal(t.step, 0) for t in (enemies, divers))
    columns = tf.range(SIZE)
    oxygen = tf.maximum(state.oxygen, 0) * SIZE // _MAX_OXYGEN
    aboard = (columns >= LAST - state.held[:, None]) & (columns < LAST)
    return [
      game.mark(state.x, state.y),
      game.mark(state.x - state.step, state.y),
      _paint_pair(bullets.x, bullets.y, tf.not_equal(bullets.step, 0)),
      _paint_all(*_behind(enemies)) | _paint_pair(*_behind(divers)),
      _paint_all(shots.x, shots.y, tf.not_equal(shots.step, 0)),
      _paint_all(enemies.x, enemies.y, present & ~enemies.armed),
      _paint_all(enemies.x, enemies.y, present & enemies.armed),
      _paint_gauge(columns < oxygen[:, None]),
      _paint_gauge(aboard),
      _paint_pair(divers.x, divers.y, swims),
    ]


def _spawn(state: SeaquestState, draws: tf.Tensor) -> SeaquestState:
  """Adds the enemies and divers that are due.

  An enemy does not come if it would meet another in its row.
  """
  due = tf.equal(state.spawn_wait, 0)
  enemies, step = state.enemies, tf.where(draws[:, 0] < 1 / 2, 1, -1)
  y = 1 + game.pick(draws[:, 2], _NUM_ROWS)
  meets = tf.equal(enemies.y, y[:, None])
  meets &= tf.equal(enemies.step, -step[:, None])
  comes = due & ~tf.reduce_any(meets, axis=1)
  entry = tf.equal(state.num_spawned[:, None], tf.range(_NUM_ENEMIES))
  entry &= comes[:, None]
  shot_wait = tf.fill(step.shape, _SHOT_PERIOD)
  new = (
    _side(step), y, step, draws[:, 1] < 1 / 3, state.move_period, shot_wait
  )  # fmt: skip
  diver_due = tf.equal(state.diver_wait, 0)
  diver_step = tf.where(draws[:, 3] < 1 / 2, 1, -1)
  divers = _append(
    state.divers,
    diver_due,
    _side(diver_step),
    1 + game.pick(draws[:, 4], _NUM_ROWS),
    diver_step,
    tf.fill(step.shape, _DIVER_MOVE_PERIOD),
  )
  return state._replace(
    enemies=Enemies(
      *(tf.where(entry, one[:, None], old) for one, old in zip(new, enemies))
    ),
    num_spawned=(state.num_spawned + game.to_int(comes)) % _NUM_ENEMIES,
    spawn_wait=game.count_down(state.spawn_wait, due, state.spawn_period),
    divers=divers,
    diver_wait=game.count_down(state.diver_wait, diver_due, _DIVER_PERIOD),
  )


def _steer(state: SeaquestState, move: tf.Tensor) -> SeaquestState:
  """Moves the submarine, or fires if it can."""
  fires = tf.equal(move, game.FIRE) & tf.equal(state.fire_wait, 0)
  left, right = tf.equal(move, game.LEFT), tf.equal(move, game.RIGHT)
  return state._replace(
    x=game.move_sideways(state.x, move),
    y=game.move_vertically(state.y, move, lowest=_LOWEST_ROW),
    step=tf.where(left, -1, tf.where(right, 1, state.step)),
    bullets=_append(state.bullets, fires, state.x, state.y, state.step),
    fire_wait=game.count_down(state.fire_wait, fires, _FIRE_PAUSE),
  )


def _append(things: Any, where: tf.Tensor, *values: tf.Tensor) -> Any:
  """Appends an entry to bullets or divers where bool `[B]`; drops the older."""
  pairs = zip(things, values)
  appended = [tf.stack([old[:, 1], new], axis=1) for old, new in pairs]
  pairs = zip(appended, things)
  return type(things)(*(tf.where(where[:, None], *pair) for pair in pairs))


def _hit(
  bullets: Bullets,
  enemies: Enemies,
  indices: tuple[int, int],
  among: Any,
  order: tf.Tensor | None = None,
) -> tuple[Bullets, Enemies, tf.Tensor]:
  """Removes bullets, in the order of their indices, and enemies that they hit.

  Only enemies `among`, bool `[B, 32]`, are hit; of several on a field the first
  in an order, int32 `[B, 32]`.

  Returns:
    The remaining bullets and enemies, and the number of hits, int32 `[B]`.
  """
  steps = tf.unstack(bullets.step, axis=1)
  hits = tf.zeros_like(steps[0])
  for i in indices:
    hit = _are_at(enemies, bullets.x[:, i], bullets.y[:, i]) & among
    hit &= tf.not_equal(steps[i], 0)[:, None]
    if order is not None:
      first = tf.reduce_min(tf.where(hit, order, _NO_TARGET), axis=1)
      hit &= tf.equal(order, first[:, None])
    enemies = enemies._replace(step=tf.where(hit, 0, enemies.step))
    has_hit = tf.reduce_any(hit, axis=1)
    steps[i] = tf.where(has_hit, 0, steps[i])
    hits += game.to_int(has_hit)
  return bullets._replace(step=tf.stack(steps, axis=1)), enemies, hits


def _rescue(
  divers: Divers, x: tf.Tensor, y: tf.Tensor, held: tf.Tensor
) -> tuple[Divers, tf.Tensor]:
  """Takes divers at the submarine's position aboard, and moves the others.

  The younger diver is processed first.

  Returns:
    The remaining divers, and the number aboard, from `held` on.
  """
  moves = tf.equal(divers.wait, 0)  # [B, 2]
  wait = tf.where(moves, _DIVER_MOVE_PERIOD, divers.wait - 1)
  next_x = tf.where(moves, divers.x + divers.step, divers.x)
  # A diver is rescued before or after its move.
  reached = _are_at(divers, x, y) | _are_at(divers._replace(x=next_x), x, y)
  younger = reached[:, 1] & (held < _MAX_DIVERS)
  held += game.to_int(younger)
  older = reached[:, 0] & (held < _MAX_DIVERS)
  held += game.to_int(older)
  step = tf.where(tf.stack([older, younger], axis=1), 0, divers.step)
  return _keep_inside(Divers(next_x, divers.y, step, wait)), held


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
  full = surfaces & tf.equal(state.held, _MAX_DIVERS)
  bonus = tf.where(full, state.oxygen * SIZE // _MAX_OXYGEN, 0)
  # A diver is also taken off after six were rescued, which leaves -1.
  held = tf.where(full, 0, state.held) - game.to_int(surfaces)
  oxygen = tf.where(surfaces, _MAX_OXYGEN, state.oxygen - game.to_int(below))
  state = state._replace(
    held=held, oxygen=oxygen, at_surface=~below & (state.at_surface | surfaces)
  )
  if ramping:
    due = surfaces & game.can_speed_up(state, _SHORTEST_MOVE_PERIOD)
    state = game.speed_up(state, due, _SHORTEST_MOVE_PERIOD)
  return state, bonus, over


def _behind(things: Any) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Returns the fields behind things, and whether they are on the board."""
  x = things.x - things.step
  return x, things.y, tf.not_equal(things.step, 0) & _is_inside(x)


def _paint_pair(x: tf.Tensor, y: tf.Tensor, shown: tf.Tensor) -> tf.Tensor:
  """Returns boards that mark two objects, bool `[B, 10, 10]`."""
  place = tf.where(shown, y * SIZE + x, -1)  # [B, 2]
  places = np.arange(SIZE * SIZE, dtype=np.int32).reshape(SIZE, SIZE)
  first, second = (place[:, i, None, None] for i in range(2))
  return tf.equal(first, places) | tf.equal(second, places)


def _paint_gauge(columns: tf.Tensor) -> tf.Tensor:
  """Returns boards that mark columns of the last row, bool `[B, 10, 10]`."""
  return tf.pad(columns[:, None, :], [[0, 0], [LAST, 0], [0, 0]])


def _paint_all(x: tf.Tensor, y: tf.Tensor, shown: tf.Tensor) -> tf.Tensor:
  """Returns boards that mark entries `[B, 32]`, as bool `[B, 10, 10]`."""
  # A word represents a row of the board: each column has enough bits to count
  # all objects there.
  words = tf.bitwise.left_shift(
    tf.ones_like(x, _WORD), _BITS * tf.cast(x, _WORD)
  )
  here = tf.equal(tf.where(shown, y, 0)[..., None], _ROWS)  # [B, 32, 8]
  words = tf.where(here, words[..., None], tf.zeros([], _WORD))
  words = tf.reduce_sum(words, axis=1)  # [B, 8]
  bits = tf.bitwise.bitwise_and(words[..., None], tf.constant(_MASKS, _WORD))
  return game.pad_lanes(tf.not_equal(bits, 0))


def _are_at(things: Any, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  """Returns which entries are at a position, bool `[B, 32]` or `[B, 2]`."""
  here = tf.equal(things.x, x[:, None]) & tf.equal(things.y, y[:, None])
  return here & tf.not_equal(things.step, 0)


def _advance(bullets: Bullets) -> Bullets:
  return _keep_inside(bullets._replace(x=bullets.x + bullets.step))


def _keep_inside(things: Any) -> Any:
  """Removes objects outside the board."""
  return things._replace(step=tf.where(_is_inside(things.x), things.step, 0))


def _side(step: tf.Tensor) -> tf.Tensor:
  """Returns the column at which objects of this direction enter."""
  return tf.where(step > 0, 0, LAST)


def _is_inside(x: tf.Tensor) -> tf.Tensor:
  return (x >= 0) & (x <= LAST)
