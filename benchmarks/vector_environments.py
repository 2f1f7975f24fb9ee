"""Vectorized environments whose cost is negligible next to acting."""

import dm_env
import numpy as np
from dm_env import specs

_FIRST, _MID, _ = (int(step_type) for step_type in dm_env.StepType)
_FORCES = np.array([-10, 10], np.float32)  # Newton, by action.


class VectorCartPole:
  """CartPole for B environments at once, with the interface of a batch.

  The equations are those of https://doi.org/10.1109/TSMC.1983.6313077, with the
  constants of gymnasium; episodes are limited to 500 steps.
  """

  def __init__(self, batch_size: int, seed: int):
    self.batch_size = batch_size
    self._random = np.random.default_rng(seed)
    # Position, speed, angle and angular speed.
    self._state = np.zeros([4, batch_size], np.float32)
    self._steps = np.zeros([batch_size], np.int32)
    self._ended = np.ones([batch_size], np.bool_)
    self._any_ended = True
    self._ones = np.ones([batch_size], np.float32)
    self._mid = np.full([batch_size], _MID, np.int32)

  def observation_spec(self):
    return specs.Array((4,), np.float32)

  def action_spec(self):
    return specs.DiscreteArray(2)

  def reward_spec(self):
    return specs.Array((), np.float32)

  def discount_spec(self):
    return specs.BoundedArray((), np.float32, 0, 1)

  def reset(self) -> dm_env.TimeStep:
    self._ended[:] = self._any_ended = True
    return self.step(np.zeros([self.batch_size], np.int32))

  def step(self, actions) -> dm_env.TimeStep:
    self._move(_FORCES.take(actions))
    again, any_again = self._ended, self._any_ended
    if any_again:
      self._state[:, again] = self._random.uniform(
        -0.05, 0.05, [4, int(again.sum())]
      )
      self._steps[again] = 0
    x, _, angle, _ = self._state
    fell = (np.abs(x) > 2.4) | (np.abs(angle) > 0.2095)
    ended = fell | (self._steps >= 500)
    if any_again:
      ended &= ~again
    self._ended, self._any_ended = ended, bool(ended.any())
    step_type = self._mid + ended  # LAST is MID + 1.
    reward, discount = self._ones.copy(), self._ones.copy()
    if any_again:
      step_type[again] = _FIRST
      reward[again] = 0
    if self._any_ended:
      discount[fell & ended] = 0
    observation = np.ascontiguousarray(self._state.T)
    return dm_env.TimeStep(step_type, reward, discount, observation)

  def _move(self, force: np.ndarray) -> None:
    """Integrates the dynamics over 0.02 seconds."""
    x, v, angle, w = self._state
    sine, cosine = np.sin(angle), np.cos(angle)
    push = (force + 0.05 * w * w * sine) / 1.1
    turn = (9.8 * sine - cosine * push) / (2 / 3 - cosine * cosine / 22)
    x += 0.02 * v
    angle += 0.02 * w
    v += 0.02 * (push - turn * cosine / 22)
    w += 0.02 * turn
    self._steps += 1

  def close(self) -> None:
    pass


class VectorPixels(VectorCartPole):
  """CartPole whose observations are images of noise, 84 × 84 × 4."""

  def __init__(self, batch_size: int, seed: int):
    super().__init__(batch_size, seed)
    self._images = self._random.integers(
      0, 255, [batch_size + 16, 84, 84, 4], np.uint8
    )

  def observation_spec(self):
    return specs.BoundedArray((84, 84, 4), np.uint8, 0, 255)

  def step(self, actions) -> dm_env.TimeStep:
    timestep = super().step(actions)
    start = self._random.integers(16)
    return timestep._replace(
      observation=self._images[start : start + self.batch_size]
    )


KINDS = {'vector': VectorCartPole, 'pixels': VectorPixels}
