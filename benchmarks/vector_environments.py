"""Vectorized environments whose cost is negligible next to acting."""

import numpy as np
from dm_env import specs

from repertory.environments.registry import registry


def make_cartpole(batch_size: int, seed: int):
  """Makes a batch of CartPole environments, which are stepped as arrays."""
  ids = range(seed, seed + batch_size)
  return registry.make_factory('gym:CartPole-v1').make_batch(list(ids))


class Pixels:
  """CartPole whose observations are images of noise, 84 × 84 × 4."""

  def __init__(self, batch_size: int, seed: int):
    self.batch_size = batch_size
    self._batch = make_cartpole(batch_size, seed)
    self._random = np.random.default_rng(seed)
    self._images = self._random.integers(
      0, 255, [batch_size + 16, 84, 84, 4], np.uint8
    )

  def __getattr__(self, name):
    return getattr(self._batch, name)

  def observation_spec(self):
    return specs.BoundedArray((84, 84, 4), np.uint8, 0, 255)

  def reset(self):
    return self._see(self._batch.reset())

  def step(self, actions):
    return self._see(self._batch.step(actions))

  def _see(self, timestep):
    start = self._random.integers(16)
    images = self._images[start : start + self.batch_size]
    return timestep._replace(observation=images)


KINDS = {'vector': make_cartpole, 'pixels': Pixels}
