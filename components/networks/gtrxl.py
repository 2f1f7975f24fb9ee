"""Gated Transformer-XL (GTrXL): a recurrent core with a memory window."""

import math
from typing import NamedTuple

import numpy as np
import sonnet as snt
import tensorflow as tf

from repertory.components.config import settings

# Initial b_g, which favors the identity: the paper, section 3.2.
_GATE_BIAS = 2.0
# Width of the hidden layer after attention, in units of the core's.
_HIDDEN_FACTOR = 4
_MASKED_SCORE = -1e30


class GTrXLState(NamedTuple):
  """Memory window, the oldest entry first; all zeros if empty.

  Attributes:
    inputs: Last M inputs of each layer, `[B, L, M, D]`.
    is_valid: 1 for entries of this episode and 0 for empty ones, `[B, M]`.
  """

  inputs: tf.Tensor
  is_valid: tf.Tensor


class GTrXL(snt.Module):
  """Gated Transformer-XL (https://arxiv.org/abs/1910.06764).

  A stack of layers whose sublayers, attention and a perceptron, read normalized
  inputs and are added by GRU gates. A time step attends to itself and to the M
  time steps before it that are of the same episode, with relative positions as
  in Transformer-XL (https://arxiv.org/abs/1901.02860). Gradients flow through
  all time steps of an unroll.
  """

  def __init__(
    self,
    size: int,
    *,
    layers: int,
    heads: int,
    window: int,
    name: str = 'gtrxl',
  ):
    """Takes the sizes.

    Args:
      size: D, the width of inputs, layers and outputs.
      layers: L, the number of layers.
      heads: Number of attention heads; divides `size`.
      window: M, the number of earlier time steps in memory.

    Raises:
      ValueError: If `heads` does not divide `size`.
    """
    super().__init__(name=name)
    if size % heads:
      raise settings.SettingError(
        'size', f'must be a multiple of heads = {heads}, got {size}.'
      )
    self._size = size
    self._window = window
    self._project = _linear('project', size)
    self._layers = [
      _Layer(size, heads, window, name=f'layer_{i}') for i in range(layers)
    ]

  def initial_state(self, batch_size: int) -> GTrXLState:
    """Returns an empty memory."""
    shape = len(self._layers), self._window, self._size
    return GTrXLState(
      tf.zeros([batch_size, *shape]), tf.zeros([batch_size, self._window])
    )

  def __call__(
    self, inputs: tf.Tensor, state: GTrXLState
  ) -> tuple[tf.Tensor, GTrXLState]:
    """Maps inputs `[B, ...]` and the memory to outputs `[B, D]` and memory."""
    first = tf.zeros_like(inputs[None, :, 0], tf.bool)  # [1, B]
    outputs, state = self.unroll(inputs[None], first, state)
    return outputs[0], state

  def unroll(
    self, inputs: tf.Tensor, first: tf.Tensor, state: GTrXLState
  ) -> tuple[tf.Tensor, GTrXLState]:
    """Processes all time steps of sequences at once; see `networks.unroll`."""
    window = self._window
    # Episodes are counted from that of the window, −1 for its empty entries.
    episodes = tf.cumsum(tf.cast(tf.transpose(first), tf.float32), axis=1)
    of_keys = tf.concat([state.is_valid - 1, episodes], axis=1)  # [B, M + T]
    allowed = tf.logical_and(
      tf.equal(episodes[:, :, None], of_keys[:, None]),
      _band(inputs.shape[0], window),
    )  # [B, T, M + T]
    x = self._project(tf.transpose(inputs, [1, 0, 2]))  # [B, T, D]
    memory = []
    for index, layer in enumerate(self._layers):
      context = tf.concat([state.inputs[:, index], x], axis=1)
      memory.append(context[:, -window:])
      x = layer(x, context, allowed)
    is_valid = tf.equal(of_keys[:, -window:], episodes[:, -1:])
    is_valid = tf.cast(is_valid, tf.float32)  # [B, M]
    memory = tf.stack(memory, axis=1) * is_valid[:, None, :, None]
    return tf.transpose(x, [1, 0, 2]), GTrXLState(memory, is_valid)


class _Layer(snt.Module):
  """Attention and a perceptron, each after layer normalization, and gated."""

  def __init__(self, size: int, heads: int, window: int, name: str):
    super().__init__(name=name)
    self._attention = _RelativeAttention(size, heads, window)
    self._perceptron = snt.Sequential(
      [
        _linear('hidden', _HIDDEN_FACTOR * size),
        tf.nn.relu,
        _linear('output', size),
      ]
    )
    self._norms = [
      snt.LayerNorm(-1, True, True, name=f'norm_{i}') for i in range(2)
    ]
    self._gates = [_Gate(size, name=f'gate_{i}') for i in range(2)]

  def __call__(
    self, x: tf.Tensor, context: tf.Tensor, allowed: tf.Tensor
  ) -> tf.Tensor:
    """Maps inputs `[B, T, D]`, given them after the window as context."""
    attended = self._attention(self._norms[0](context), allowed)
    x = self._gates[0](x, tf.nn.relu(attended))
    processed = self._perceptron(self._norms[1](x))
    return self._gates[1](x, tf.nn.relu(processed))


class _RelativeAttention(snt.Module):
  """Attention with relative positions: Transformer-XL, section 3.3."""

  def __init__(self, size: int, heads: int, window: int):
    super().__init__(name='relative_attention')
    self._shape = heads, size // heads
    self._window = window
    self._distances = _encode_distances(window, size)
    self._query, self._key, self._value = (
      _linear(name, size, with_bias=False) for name in ('query', 'key', 'value')
    )
    self._position = snt.Linear(size, with_bias=False, name='position')
    self._output = _linear('output', size)
    self._content_bias = tf.Variable(tf.zeros(self._shape), name='u')
    self._position_bias = tf.Variable(tf.zeros(self._shape), name='v')

  def __call__(self, context: tf.Tensor, allowed: tf.Tensor) -> tf.Tensor:
    """Attends from the last T entries to all of them.

    Args:
      context: `[B, M + T, D]`.
      allowed: Bool `[B, T, M + T]`, false where no attention is paid.

    Returns:
      `[B, T, D]`.
    """
    length = context.shape[1] - self._window
    queries = self._split(self._query(context[:, -length:]), length)
    keys, values = (
      self._split(linear(context), context.shape[1])
      for linear in (self._key, self._value)
    )  # [B, M + T, N, D / N]
    positions = self._position(tf.constant(self._distances))
    positions = tf.reshape(positions, [-1, *self._shape])  # [M + 1, N, D / N]
    scores = tf.einsum('btnd,bknd->bntk', queries + self._content_bias, keys)
    scores += _align(
      tf.einsum('btnd,mnd->bntm', queries + self._position_bias, positions)
    )
    scores /= math.sqrt(self._shape[1])
    weights = tf.nn.softmax(tf.where(allowed[:, None], scores, _MASKED_SCORE))
    attended = tf.einsum('bntk,bknd->btnd', weights, values)
    size = self._shape[0] * self._shape[1]
    return self._output(tf.reshape(attended, [-1, length, size]))

  def _split(self, x: tf.Tensor, length: int) -> tf.Tensor:
    """Splits `[B, K, D]` into heads `[B, K, N, D / N]`."""
    return tf.reshape(x, [-1, length, *self._shape])


class _Gate(snt.Module):
  """Gate of the type of a GRU, g(x, y): the paper, section 3.2."""

  def __init__(self, size: int, name: str):
    super().__init__(name=name)
    self._of_y = _linear('of_y', 3 * size, with_bias=False)
    self._of_x = _linear('of_x', 2 * size, with_bias=False)
    self._of_reset_x = _linear('of_reset_x', size, with_bias=False)
    self._bias = tf.Variable(tf.fill([size], _GATE_BIAS), name='b_g')

  def __call__(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    r_y, z_y, h_y = tf.split(self._of_y(y), 3, axis=-1)
    r_x, z_x = tf.split(self._of_x(x), 2, axis=-1)
    r = tf.sigmoid(r_y + r_x)
    z = tf.sigmoid(z_y + z_x - self._bias)
    h = tf.tanh(h_y + self._of_reset_x(r * x))
    return (1 - z) * x + z * h


def _linear(name: str, size: int, with_bias: bool = True) -> snt.BatchApply:
  """Returns a linear layer of `[B, T, D]`."""
  # A product of matrices, whose gradient is one as well.
  return snt.BatchApply(snt.Linear(size, with_bias, name=name))


def _encode_distances(window: int, size: int) -> np.ndarray:
  """Returns sinusoids of the distances M to 0, `[M + 1, D]`."""
  distances = np.arange(window, -1, -1)[:, None]
  phases = distances / 10_000 ** (np.arange(0, size, 2) / size)
  sinusoids = np.concatenate([np.sin(phases), np.cos(phases)], axis=1)
  return sinusoids[:, :size].astype(np.float32)


def _band(length: int, window: int) -> np.ndarray:
  """Returns where keys are at most M before queries, bool `[T, M + T]`."""
  ahead = np.arange(window + length) - np.arange(length)[:, None]
  return (ahead >= 0) & (ahead <= window)


def _align(scores: tf.Tensor) -> tf.Tensor:
  """Moves scores of distances M to 0 to their keys.

  Args:
    scores: `[B, N, T, M + 1]`.

  Returns:
    `[B, N, T, M + T]`: row t begins with t arbitrary numbers, and ends with
    arbitrary numbers.
  """
  heads, length, width = scores.shape[1:]
  padded = tf.pad(scores, [[0, 0], [0, 0], [0, 0], [0, length]])
  flat = tf.reshape(padded, [-1, heads, length * (width + length)])
  # Rows that are shorter by one begin one further to the left each.
  return tf.reshape(
    flat[:, :, : length * (width + length - 1)],
    [-1, heads, length, width + length - 1],
  )
