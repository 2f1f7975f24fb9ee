"""Random streams per row of a batch, independent of the batch.

TensorFlow's stateless generators take one seed for a whole tensor, so a row's
numbers would depend on the rows it is batched with. Here each row carries a
counter of its own: SplitMix64, https://doi.org/10.1145/2714064.2660195. A row
draws the same numbers in any batch, on any node.
"""

import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

_GOLDEN_GAMMA = 0x9E3779B97F4A7C15
_MULTIPLIER_1 = 0xBF58476D1CE4E5B9
_MULTIPLIER_2 = 0x94D049BB133111EB

# Arrays, with which NumPy computes faster than with numbers.
_CONSTANTS = np.array(
  [
    *(_GOLDEN_GAMMA, _MULTIPLIER_1, _MULTIPLIER_2, 30, 27, 31, 40, 2**24 - 1),
  ],
  np.uint64,
)[:, None]
_UNIT = np.array([2.0**-24], np.float32)
# Numbers that are drawn at once.
_NUM_AHEAD = 256


def initial_counters(seed: int, stream_ids: Sequence[int]) -> tf.Tensor:
  """Returns initial counters of streams, uint64 `[len(stream_ids)]`."""
  counters = [
    np.random.SeedSequence([seed, stream_id]).generate_state(1, np.uint64)[0]
    for stream_id in stream_ids
  ]
  return tf.constant(np.asarray(counters, np.uint64))


def next_uniforms(
  counters: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Draws two float32 `[B]` in [0, 1); returns them and the next counters."""
  counters = counters + tf.constant(_GOLDEN_GAMMA, tf.uint64)
  first, second = _uniforms_of(counters)
  return first, second, counters


class NumpyUniforms:
  """`next_uniforms` in NumPy, which draws for several steps at once.

  NumPy takes about as long for many numbers as for one.
  """

  def __init__(self):
    self._drawn: list[tuple[np.ndarray, ...]] = []
    self._counters: np.ndarray | None = None

  def __call__(self, counters: np.ndarray) -> tuple[np.ndarray, ...]:
    """Computes `next_uniforms`."""
    if counters is not self._counters or not self._drawn:
      self._drawn = _draw_ahead(counters)
    drawn = self._drawn.pop()
    self._counters = drawn[-1]
    return drawn


def _draw_ahead(counters: np.ndarray) -> list[tuple[np.ndarray, ...]]:
  """Draws uniforms of several steps, the last step first."""
  num_steps = 1 + _NUM_AHEAD // len(counters)
  gamma, multiplier_1, multiplier_2, *places, places_of_high, low = _CONSTANTS
  steps = np.arange(num_steps, 0, -1, dtype=np.uint64)[:, None]
  counters = counters + gamma * steps  # [num_steps, B]
  bits = (counters ^ (counters >> places[0])) * multiplier_1
  bits = (bits ^ (bits >> places[1])) * multiplier_2
  bits = bits ^ (bits >> places[2])
  highs = (bits >> places_of_high).astype(np.float32) * _UNIT
  lows = (bits & low).astype(np.float32) * _UNIT
  return list(zip(highs, lows, counters))


def next_bits(counters: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Draws uint64 `[B]`, such as keys for another generator."""
  counters = counters + tf.constant(_GOLDEN_GAMMA, tf.uint64)
  return _mixed(counters), counters


def next_uniform_vectors(
  counters: tf.Tensor, size: int
) -> tuple[tf.Tensor, tf.Tensor]:
  """Draws float32 `[B, D]` in [0, 1) for a size D, which may be 0.

  They are the first numbers of as many calls of `next_uniforms` as needed, then
  their second ones.
  """
  if not size:
    return tf.zeros([*counters.shape, 0]), counters
  first, second, counters = _next_pairs(counters, size)
  return tf.concat([first, second], axis=-1)[:, :size], counters


def next_normals(counters: tf.Tensor, size: int) -> tuple[tf.Tensor, tf.Tensor]:
  """Draws standard normal float32 `[B, D]`, by the Box–Muller transform.

  See https://doi.org/10.1214/aoms/1177706645.
  """
  first, second, counters = _next_pairs(counters, size)
  # The logarithm of 1 − u, because u may be 0 but never 1.
  radius = tf.sqrt(-2 * tf.math.log1p(-first))
  angle = 2 * math.pi * second
  pairs = [radius * tf.cos(angle), radius * tf.sin(angle)]
  return tf.concat(pairs, axis=-1)[:, :size], counters


def _next_pairs(
  counters: tf.Tensor, size: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Draws consecutive `next_uniforms`, `[B, (size + 1) // 2]` each."""
  num_pairs = (size + 1) // 2
  gammas = np.arange(1, num_pairs + 1, dtype=np.uint64) * np.uint64(
    _GOLDEN_GAMMA
  )
  places = counters[:, None] + tf.constant(gammas)  # [B, num_pairs]
  first, second = _uniforms_of(places)
  return first, second, places[:, -1]


def _uniforms_of(bits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Mixes each counter into two numbers in [0, 1)."""
  bits = _mixed(bits)
  # A float32 has 24 bits of precision; the two numbers share none.
  high = tf.bitwise.right_shift(bits, tf.constant(40, tf.uint64))
  low = tf.bitwise.bitwise_and(bits, tf.constant(2**24 - 1, tf.uint64))
  return _to_unit(high), _to_unit(low)


def _mixed(bits: tf.Tensor) -> tf.Tensor:
  bits = _xor_shifted(bits, 30) * tf.constant(_MULTIPLIER_1, tf.uint64)
  bits = _xor_shifted(bits, 27) * tf.constant(_MULTIPLIER_2, tf.uint64)
  return _xor_shifted(bits, 31)


def _xor_shifted(bits: tf.Tensor, places: int) -> tf.Tensor:
  shifted = tf.bitwise.right_shift(bits, tf.constant(places, tf.uint64))
  return tf.bitwise.bitwise_xor(bits, shifted)


def _to_unit(bits: tf.Tensor) -> tf.Tensor:
  return tf.cast(bits, tf.float32) * 2.0**-24
