"""Moving objects of Seaquest: enemies, their bullets, divers and own bullets.

Each kind has a fixed number of entries, more than can be in use at once.
MinAtar keeps them in lists, whose order decides a few cases; here that order
follows from the index of the entries, or from their age.
"""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from repertory.environments.tensor.minatar import game
from repertory.environments.tensor.minatar.game import LAST, SIZE

# Enemies and divers come on rows 1 to 8.
NUM_ROWS = 8
# An enemy lives for at most 29 steps at the smallest period, when one may come
# each step, and for 60 at the largest, when at most one comes in 14 steps.
NUM_ENEMIES = 32
SHOT_PERIOD = 10
DIVER_PERIOD = 5
MAX_DIVERS = 6
_NO_TARGET = 1000
_ROWS = np.arange(1, 1 + NUM_ROWS, dtype=np.int32)
# Each row is packed into a word: bits per column, and their offsets.
_BITS = 6
_WORD = tf.int64
_MASKS = [(2**_BITS - 1) << (_BITS * x) for x in range(SIZE)]


class Bullets(NamedTuple):
  """Bullets of the submarine, the older one first, or of the enemies.

  int32 `[B, 2]` or `[B, 32]`, those of the enemies at the same indices. A
  bullet leaves the board before its entry is needed again.
  """

  x: tf.Tensor  # Column.
  y: tf.Tensor  # Row.
  step: tf.Tensor  # Direction, 1 right or -1 left; 0 in an empty entry.


class Divers(NamedTuple):
  """Divers, the older one first: `Bullets` with the steps until they move.

  A diver leaves the board before two others have come.
  """

  x: tf.Tensor
  y: tf.Tensor
  step: tf.Tensor
  wait: tf.Tensor


class Enemies(NamedTuple):
  """Fish and submarines, `[B, 32]`: as `Bullets`, and further attributes.

  Two enemies of one kind on the same field never move in the same step, because
  they came one after the other.
  """

  x: tf.Tensor
  y: tf.Tensor
  step: tf.Tensor
  armed: tf.Tensor  # Whether it is a submarine, bool.
  move_wait: tf.Tensor  # Steps until it moves, int32.
  shot_wait: tf.Tensor  # Steps until it shoots if it is a submarine, int32.


def append(things: Any, where: tf.Tensor, *values: tf.Tensor) -> Any:
  """Appends an entry to bullets or divers where bool `[B]`; drops the older."""
  return type(things)(
    *(
      tf.where(where[:, None], tf.stack([old[:, 1], new], axis=1), old)
      for old, new in zip(things, values)
    )
  )


def add_enemy(
  enemies: Enemies,
  place: tf.Tensor,
  comes: tf.Tensor,
  y: tf.Tensor,
  step: tf.Tensor,
  armed: tf.Tensor,
  period: tf.Tensor,
) -> tuple[Enemies, tf.Tensor]:
  """Adds an enemy at entry `place`, unless it would meet another in its row.

  Returns:
    The enemies, and whether one was added, bool `[B]`.
  """
  meets = tf.equal(enemies.y, y[:, None]) & tf.equal(
    enemies.step, -step[:, None]
  )
  comes &= ~tf.reduce_any(meets, axis=1)
  here = tf.equal(place[:, None], tf.range(NUM_ENEMIES)) & comes[:, None]

  def put(old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
    return tf.where(here, new[:, None], old)

  enemies = Enemies(
    put(enemies.x, side(step)),
    put(enemies.y, y),
    put(enemies.step, step),
    put(enemies.armed, armed),
    put(enemies.move_wait, period),
    put(enemies.shot_wait, tf.fill(step.shape, SHOT_PERIOD)),
  )
  return enemies, comes


def fly(
  bullets: Bullets, enemies: Enemies
) -> tuple[Bullets, Enemies, tf.Tensor]:
  """Moves the submarine's bullets.

  The younger bullet moves first. A bullet hits a fish before a submarine, and
  an older enemy before a younger one.

  Returns:
    The remaining bullets and enemies, and the number of hits, int32 `[B]`.
  """
  x = bullets.x + bullets.step
  flying = tf.where(_is_inside(x), bullets.step, 0)  # [B, 2]
  hits = tf.zeros_like(x[:, 0])
  steps = []
  # On the same field, the older enemy moves first.
  order = enemies.move_wait + tf.where(enemies.armed, _NO_TARGET // 2, 0)
  for i in (1, 0):
    step = flying[:, i]
    here = _are_at(enemies, x[:, i], bullets.y[:, i])
    here &= tf.not_equal(step, 0)[:, None]
    first = tf.reduce_min(tf.where(here, order, _NO_TARGET), axis=1)
    hit = here & tf.equal(order, first[:, None])
    enemies = enemies._replace(step=tf.where(hit, 0, enemies.step))
    has_hit = tf.reduce_any(here, axis=1)
    steps.insert(0, tf.where(has_hit, 0, step))
    hits += game.to_int(has_hit)
  return Bullets(x, bullets.y, tf.stack(steps, axis=1)), enemies, hits


def rescue(
  divers: Divers, x: tf.Tensor, y: tf.Tensor, held: tf.Tensor
) -> tuple[Divers, tf.Tensor]:
  """Takes divers at the submarine's position aboard, and moves the others.

  The younger diver is processed first.

  Returns:
    The remaining divers, and the number aboard, from `held` on.
  """
  moves = tf.equal(divers.wait, 0)  # [B, 2]
  wait = tf.where(moves, DIVER_PERIOD, divers.wait - 1)
  next_x = tf.where(moves, divers.x + divers.step, divers.x)
  swims = tf.not_equal(divers.step, 0)
  # A diver is rescued before or after its move.
  reached = tf.equal(divers.x, x[:, None]) | tf.equal(next_x, x[:, None])
  reached &= swims & tf.equal(divers.y, y[:, None])
  younger = reached[:, 1] & (held < MAX_DIVERS)
  held += game.to_int(younger)
  older = reached[:, 0] & (held < MAX_DIVERS)
  held += game.to_int(older)
  gone = tf.stack([older, younger], axis=1) | ~_is_inside(next_x)
  step = tf.where(gone, 0, divers.step)
  return Divers(next_x, divers.y, step, wait), held


def swim(
  enemies: Enemies,
  bullets: Bullets,
  x: tf.Tensor,
  y: tf.Tensor,
  period: tf.Tensor,
) -> tuple[Enemies, Bullets, tf.Tensor, tf.Tensor, Enemies]:
  """Moves the enemies, possibly into bullets, of which the older hits first.

  At most one enemy enters a field per step.

  Returns:
    The remaining enemies and bullets; the number of hits, int32 `[B]`; whether
    an enemy touches the player at x and y, bool `[B]`; and the enemies
    including those that were hit or left the board in this step, which still
    shoot.
  """
  touched = tf.reduce_any(_are_at(enemies, x, y), axis=1)
  present = tf.not_equal(enemies.step, 0)
  moves = present & tf.equal(enemies.move_wait, 0)
  all_enemies = enemies._replace(
    x=tf.where(moves, enemies.x + enemies.step, enemies.x),
    move_wait=tf.where(moves, period[:, None], enemies.move_wait - 1),
  )
  enemies = _keep_inside(all_enemies)
  touching = _are_at(enemies, x, y)
  touched |= tf.reduce_any(touching, axis=1)
  hits = tf.zeros_like(x)
  steps = []
  for i in (0, 1):
    step = bullets.step[:, i]
    hit = _are_at(enemies, bullets.x[:, i], bullets.y[:, i])
    hit &= moves & ~touching & tf.not_equal(step, 0)[:, None]
    enemies = enemies._replace(step=tf.where(hit, 0, enemies.step))
    has_hit = tf.reduce_any(hit, axis=1)
    steps.append(tf.where(has_hit, 0, step))
    hits += game.to_int(has_hit)
  bullets = bullets._replace(step=tf.stack(steps, axis=1))
  return enemies, bullets, hits, touched, all_enemies


def shoot(
  shots: Bullets, enemies: Enemies, x: tf.Tensor, y: tf.Tensor
) -> tuple[Bullets, tf.Tensor, tf.Tensor]:
  """Lets the enemies' submarines shoot, and moves all shots.

  Returns:
    The shots; the steps until each enemy's next shot, int32 `[B, 32]`; and
    whether the player is at the start or the end of a shot's move, bool `[B]`.
  """
  shoots = tf.not_equal(enemies.step, 0) & enemies.armed
  shoots &= tf.equal(enemies.shot_wait, 0)
  before = Bullets(
    tf.where(shoots, enemies.x, shots.x),
    tf.where(shoots, enemies.y, shots.y),
    tf.where(shoots, enemies.step, shots.step),
  )
  after = _keep_inside(before._replace(x=before.x + before.step))
  touched = _are_at(before, x, y) | _are_at(after, x, y)
  wait = tf.where(shoots, SHOT_PERIOD, enemies.shot_wait - 1)
  return after, wait, tf.reduce_any(touched, axis=1)


def paint(enemies: Enemies, shots: Bullets) -> list[tf.Tensor]:
  """Returns boards of fish, submarines, the fields behind both, and shots."""
  present = tf.not_equal(enemies.step, 0)
  behind = enemies.x - enemies.step
  has_trail = present & _is_inside(behind)
  return [
    _paint(enemies.x, enemies.y, present & ~enemies.armed),
    _paint(enemies.x, enemies.y, present & enemies.armed),
    _paint(behind, enemies.y, has_trail),
    _paint(shots.x, shots.y, tf.not_equal(shots.step, 0)),
  ]


def _paint(x: tf.Tensor, y: tf.Tensor, shown: tf.Tensor) -> tf.Tensor:
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
  return tf.pad(tf.not_equal(bits, 0), [[0, 0], [1, 1], [0, 0]])


def _are_at(things: Any, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  """Returns which entries are at a position, bool `[B, 32]`."""
  here = tf.equal(things.x, x[:, None]) & tf.equal(things.y, y[:, None])
  return here & tf.not_equal(things.step, 0)


def _keep_inside(things: Any) -> Any:
  """Removes enemies or shots outside the board."""
  return things._replace(step=tf.where(_is_inside(things.x), things.step, 0))


def side(step: tf.Tensor) -> tf.Tensor:
  """Returns the column at which objects of this direction enter."""
  return tf.where(step > 0, 0, LAST)


def _is_inside(x: tf.Tensor) -> tf.Tensor:
  return (x >= 0) & (x <= LAST)
