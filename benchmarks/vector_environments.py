"""Environment batches of arrays, so cheap that acting is what costs."""

import dm_env
import numpy as np
from dm_env import specs

_FIRST, _MID, _LAST = (int(step_type) for step_type in dm_env.StepType)


class VectorCartPole:
  """CartPole for B environments at once, with the interface of a batch.

  The equations are those of https://doi.org/10.1109/TSMC.1983.6313077, with the
  constants that gymnasium has; episodes end after 500 steps at the latest.
  """

  def __init__(self, batch_size: int, seed: int):
    self.batch_size = batch_size
    self._random = np.random.default_rng(seed)
    self._state = np.zeros([4, batch_size], np.float32)
    self._steps = np.zeros([batch_size], np.int32)
    self._ended = np.ones([batch_size], np.bool_)

  def observation_spec(self):
    return specs.Array((4,), np.float32)

  def action_spec(self):
    return specs.DiscreteArray(2)

  def reward_spec(self):
    return specs.Array((), np.float32)

  def discount_spec(self):
    return specs.BoundedArray((), np.float32, 0, 1)

  def reset(self) -> dm_env.TimeStep:
    self._ended[:] = True
    return self.step(np.zeros([self.batch_size], np.int32))

  def step(self, actions) -> dm_env.TimeStep:
    again = self._ended
    x, v, angle, w = self._state
    force = np.where(actions == 1, np.float32(10), np.float32(-10))
    sine, cosine = np.sin(angle), np.cos(angle)
    push = (force + np.float32(0.05) * w * w * sine) / np.float32(1.1)
    turn = (np.float32(9.8) * sine - cosine * push) / (
      np.float32(0.5) * (np.float32(4 / 3) - cosine * cosine / np.float32(11))
    )
    tau = np.float32(0.02)
    self._state = np.stack(
      [
        x + tau * v,
        v + tau * (push - turn * cosine / np.float32(22)),
        angle + tau * w,
        w + tau * turn,
      ]
    )
    self._steps += 1
    if again.any():
      self._state[:, again] = self._random.uniform(
        -0.05, 0.05, [4, int(again.sum())]
      )
      self._steps[again] = 0
    fell = (np.abs(self._state[0]) > 2.4) | (np.abs(self._state[2]) > 0.2095)
    self._ended = ended = (fell | (self._steps >= 500)) & ~again
    step_type = np.where(ended, _LAST, np.where(again, _FIRST, _MID))
    return dm_env.TimeStep(
      step_type.astype(np.int32),
      np.where(again, np.float32(0), np.float32(1)),
      np.where(fell & ended, np.float32(0), np.float32(1)),
      np.ascontiguousarray(self._state.T),
    )

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
