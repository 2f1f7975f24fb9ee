"""A grid of gates, of which each opens by one of several handles."""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from dm_env import specs

from repertory.environments.tensor import environment

_SIZE, _NUM_HANDLES, _MAX_STEPS = 5, 8, 40
_MOVES = np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])
_NUM_PLACES, _NUM_ACTIONS = _SIZE**2, len(_MOVES) * _NUM_HANDLES


def _find_targets() -> np.ndarray:
  """Returns the place that each action leads to, `[places, actions]`.

  −1 where a wall or the wrong handle stops it.
  """
  targets = np.full((_NUM_PLACES, len(_MOVES), _NUM_HANDLES), -1, np.int32)
  for row, column in np.ndindex(_SIZE, _SIZE):
    for i, (down, right) in enumerate(_MOVES):
      to_row, to_column = row + down, column + right
      if 0 <= to_row < _SIZE and 0 <= to_column < _SIZE:
        handle = (3 * row + 2 * column + i) % _NUM_HANDLES
        place = _SIZE * row + column
        targets[place, i, handle] = _SIZE * to_row + to_column
  return targets.reshape(_NUM_PLACES, _NUM_ACTIONS)


_TARGETS = _find_targets()


class GatesCore(NamedTuple):
  """State of the grid."""

  place: tf.Tensor  # int32 `[B]`, from 0 in the first corner.
  num_steps: tf.Tensor  # int32 `[B]`.


class Gates(environment.TensorEnvironment):
  """Cross a 5 x 5 grid from corner to corner, through gates.

  The gate between two places opens by one of eight handles, which depends on
  place and direction. An action is a direction and a handle; a wrong one does
  nothing, and is masked. The goal is rewarded with 1, and ends the episode,
  which is truncated after 40 steps.

  Observation: a dict of 'place', float32 `[25]`, one-hot; and 'action_mask',
  bool `[32]`, unless `masked` is false.
  Actions: int32, 8 · direction + handle, from 0 to 31.
  """

  def __init__(self, masked: bool = True):
    """Sets the specs; `masked` is whether observations have action masks."""
    self._masked = masked

  def observation_spec(self) -> dict[str, specs.Array]:
    place = specs.BoundedArray((_NUM_PLACES,), np.float32, 0, 1, name='place')
    if not self._masked:
      return {'place': place}
    mask = specs.Array((_NUM_ACTIONS,), np.bool_, name='action_mask')
    return {'place': place, 'action_mask': mask}

  def action_spec(self) -> specs.DiscreteArray:
    return specs.DiscreteArray(_NUM_ACTIONS, np.int32, name='gate')

  def reward_spec(self) -> specs.BoundedArray:
    return specs.BoundedArray((), np.float32, 0, 1, name='reward')

  def start(
    self, counters: tf.Tensor, before: GatesCore | None
  ) -> tuple[GatesCore, tf.Tensor]:
    del before
    zeros = tf.zeros(counters.shape, tf.int32)
    return GatesCore(zeros, zeros), counters

  def advance(
    self, core: GatesCore, action: tf.Tensor, counters: tf.Tensor
  ) -> environment.Advance:
    targets = tf.gather(tf.constant(_TARGETS), core.place)  # [B, A]
    target = tf.gather(targets, action, batch_dims=1)  # [B]
    place = tf.where(target < 0, core.place, target)
    is_goal = tf.equal(place, _NUM_PLACES - 1)
    num_steps = core.num_steps + 1
    return environment.Advance(
      GatesCore(place, num_steps),
      tf.cast(is_goal, tf.float32),
      terminated=is_goal,
      truncated=tf.equal(num_steps, _MAX_STEPS),
      counters=counters,
    )

  def observe(self, core: GatesCore) -> Any:
    observation = {'place': tf.one_hot(core.place, _NUM_PLACES)}
    if self._masked:
      targets = tf.gather(tf.constant(_TARGETS), core.place)  # [B, A]
      observation['action_mask'] = targets >= 0
    return observation
