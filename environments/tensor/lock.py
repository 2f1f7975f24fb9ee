"""Combination lock: a contextual bandit with composite actions."""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from dm_env import specs

from repertory.components.runtime import random_streams
from repertory.environments.tensor import environment

# Number of positions of each dial.
_POSITIONS = np.array([3, 4], np.int32)
_NUM_STEPS = 8


class LockCore(NamedTuple):
  """The combination, and the number of attempts."""

  code: tf.Tensor  # Position of each dial, int32 `[B, 2]`.
  angle: tf.Tensor  # Angle of the key, in [-1, 1], float32 `[B]`.
  num_steps: tf.Tensor  # int32 `[B]`.


class Lock(environment.TensorEnvironment):
  """Set the dials, and turn the key, as shown.

  Each step shows another combination. A step with all dials right is rewarded
  with 1, or with a key 1 - |turned - shown|; all others with 0. An episode has
  eight steps, so the best return is 8. Policies that ignore one of the dials
  reach 8/3 at best, those that never turn the key 4.

  Observation: float32 `[7]`, the position of each dial as one-hot, 3 and 4
  numbers; with a key `[8]`, its angle last.
  Actions: positions of both dials, int32 `[2]`, from 0 to 2 and from 0 to 3.
  With a key, a dict of these, 'dials', and of 'key', an angle in [-1, 1].
  """

  def __init__(self, key: bool = False):
    """Sets the specs; `key` is whether the lock has a key."""
    self._has_key = key

  def observation_spec(self) -> specs.BoundedArray:
    minimum = np.zeros(_POSITIONS.sum(), np.float32)
    if self._has_key:
      minimum = np.append(minimum, np.float32(-1))
    return specs.BoundedArray(
      minimum.shape, np.float32, minimum, 1, name='combination'
    )

  def action_spec(self) -> Any:
    dials = specs.BoundedArray(
      _POSITIONS.shape, np.int32, 0, _POSITIONS - 1, name='dials'
    )
    if not self._has_key:
      return dials
    key = specs.BoundedArray((), np.float32, -1, 1, name='key')
    return {'dials': dials, 'key': key}

  def reward_spec(self) -> specs.BoundedArray:
    # The error of the key's angle is at most 2.
    least = -1 if self._has_key else 0
    return specs.BoundedArray((), np.float32, least, 1, name='reward')

  def start(
    self, counters: tf.Tensor, before: LockCore | None
  ) -> tuple[LockCore, tf.Tensor]:
    del before
    return self._draw(tf.zeros(counters.shape, tf.int32), counters)

  def advance(
    self, core: LockCore, action: Any, counters: tf.Tensor
  ) -> environment.Advance:
    dials = action['dials'] if self._has_key else action  # [B, 2]
    is_right = tf.reduce_all(tf.equal(dials, core.code), axis=-1)  # [B]
    reward = tf.cast(is_right, tf.float32)
    if self._has_key:
      reward *= 1 - tf.abs(action['key'] - core.angle)
    following, counters = self._draw(core.num_steps + 1, counters)
    ended = tf.equal(following.num_steps, _NUM_STEPS)
    return environment.Advance(
      following,
      reward,
      terminated=ended,
      truncated=tf.zeros_like(ended),
      counters=counters,
    )

  def observe(self, core: LockCore) -> tf.Tensor:
    parts = [
      tf.one_hot(core.code[:, i], count) for i, count in enumerate(_POSITIONS)
    ]
    if self._has_key:
      parts.append(core.angle[:, None])
    return tf.concat(parts, axis=-1)

  def _draw(
    self, num_steps: tf.Tensor, counters: tf.Tensor
  ) -> tuple[LockCore, tf.Tensor]:
    """Draws a combination for each row."""
    uniforms, counters = random_streams.next_uniform_vectors(
      counters, len(_POSITIONS) + 1
    )  # [B, 3]
    code = tf.cast(uniforms[:, :-1] * _POSITIONS, tf.int32)
    return LockCore(code, 2 * uniforms[:, -1] - 1, num_steps), counters
