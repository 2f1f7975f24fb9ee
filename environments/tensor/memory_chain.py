"""Memory chain in TensorFlow: see `environments/games/memory_chain.py`."""

from typing import NamedTuple

import tensorflow as tf

from repertory.components.runtime import random_streams
from repertory.environments.games import memory_chain
from repertory.environments.tensor import environment


class MemoryChainCore(NamedTuple):
  """The cue and the number of steps since it was shown, int32 `[B]` each."""

  cue: tf.Tensor
  num_steps: tf.Tensor


class TensorMemoryChain(environment.DerivedEnvironment):
  """Shows one of two cues and queries it `length` steps later.

  Rules, specs, rewards and observations are those of
  `environments.games.memory_chain.MemoryChain`; the random cues differ.
  """

  def __init__(self, length: int = 10):
    """Sets the length, as `games.memory_chain.MemoryChain` does."""
    super().__init__(memory_chain.MemoryChain(length))
    self._length = length

  def start(
    self, counters: tf.Tensor, before: MemoryChainCore | None
  ) -> tuple[MemoryChainCore, tf.Tensor]:
    del before
    uniform, _, counters = random_streams.next_uniforms(counters)  # [B]
    cue = tf.cast(uniform * 2, tf.int32)
    return MemoryChainCore(cue, tf.zeros_like(cue)), counters

  def advance(
    self, core: MemoryChainCore, action: tf.Tensor, counters: tf.Tensor
  ) -> environment.Advance:
    ended = tf.equal(core.num_steps, self._length)
    reward = tf.where(tf.equal(action, core.cue), 1.0, -1.0)
    return environment.Advance(
      MemoryChainCore(core.cue, core.num_steps + 1),
      tf.where(ended, reward, 0.0),
      terminated=ended,
      truncated=tf.zeros_like(ended),
      counters=counters,
    )

  def observe(self, core: MemoryChainCore) -> tf.Tensor:
    # All zeros where neither holds.
    shown = tf.where(tf.equal(core.num_steps, 0), core.cue, -1)
    shown = tf.where(tf.equal(core.num_steps, self._length), 2, shown)
    return tf.one_hot(shown, 3)
