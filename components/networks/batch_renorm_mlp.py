"""MLP with batch renormalization (CrossQ)."""

import contextlib
import threading
from collections.abc import Iterator, Sequence

import sonnet as snt
import tensorflow as tf

from repertory.components.runtime import data_parallel

# From the reference code of CrossQ, https://arxiv.org/abs/1902.05605.
_DECAY = 0.99
_EPSILON = 1e-3
_NUM_WARM_UP_CALLS = 100_000
_MAX_RATIO, _MAX_SHIFT = 3.0, 5.0

_scope = threading.local()


@contextlib.contextmanager
def batch_statistics() -> Iterator[None]:
  """Enables training mode of `BatchRenormMLP`s traced inside.

  They normalize by the statistics of the batch and update their running
  statistics, which are used outside. Other networks are not affected.
  """
  before = getattr(_scope, 'is_active', False)
  _scope.is_active = True
  try:
    yield
  finally:
    _scope.is_active = before


class BatchRenormMLP(snt.Module):
  """MLP of CrossQ: linear layers with ReLU and batch renormalization.

  Rows of a batch depend on each other inside `batch_statistics`. If states and
  next states form one batch, Q-learning needs no target network:
  https://arxiv.org/abs/1902.05605.
  """

  def __init__(
    self, hidden_sizes: Sequence[int], name: str = 'batch_renorm_mlp'
  ):
    """Creates the layers; the first call creates their variables.

    Args:
      hidden_sizes: Sizes of the layers; the last one is D.
    """
    super().__init__(name=name)
    self._norm = _BatchRenorm(name='norm')
    self._layers = [
      (snt.Linear(size, name=f'linear_{i}'), _BatchRenorm(name=f'norm_{i}'))
      for i, size in enumerate(hidden_sizes)
    ]

  def __call__(self, inputs: tf.Tensor) -> tf.Tensor:
    """Maps inputs `[B, F]` to features `[B, D]`."""
    features = self._norm(inputs)
    for linear, norm in self._layers:
      features = norm(tf.nn.relu(linear(features)))
    return features


class _BatchRenorm(snt.Module):
  """Batch renormalization (https://arxiv.org/abs/1702.03275, algorithm 1).

  The first calls use only batch statistics, until the running statistics are
  reliable.
  """

  @snt.once
  def _make_variables(self, size: int) -> None:
    zeros, ones = tf.zeros([size]), tf.ones([size])
    self._scale = tf.Variable(ones, name='scale')
    self._offset = tf.Variable(zeros, name='offset')
    self._running_mean = tf.Variable(zeros, trainable=False, name='mean')
    self._running_variance = tf.Variable(ones, trainable=False, name='variance')
    # A float, so that target networks can average all variables.
    self._num_calls = tf.Variable(0.0, trainable=False, name='num_calls')

  def __call__(self, inputs: tf.Tensor) -> tf.Tensor:
    """Maps `[B, F]` to `[B, F]`."""
    self._make_variables(inputs.shape[-1])
    if getattr(_scope, 'is_active', False):
      normalized = self._normalize_by_batch(inputs)
    else:
      normalized = (inputs - self._running_mean) * tf.math.rsqrt(
        self._running_variance + _EPSILON
      )
    return normalized * self._scale + self._offset

  def _normalize_by_batch(self, inputs: tf.Tensor) -> tf.Tensor:
    if data_parallel.is_dividing():
      raise ValueError(
        'batch_renorm_mlp must see whole batches, got rows divided among '
        'devices. Use one device or another body.'
      )
    mean, variance = tf.nn.moments(inputs, axes=[0])  # [F]
    deviation = tf.sqrt(variance + _EPSILON)
    before = self._running_mean.read_value()
    deviation_before = tf.sqrt(self._running_variance + _EPSILON)
    ratio = tf.clip_by_value(
      deviation / deviation_before, 1 / _MAX_RATIO, _MAX_RATIO
    )
    shift = tf.clip_by_value(
      (mean - before) / deviation_before, -_MAX_SHIFT, _MAX_SHIFT
    )
    is_warm = self._num_calls >= _NUM_WARM_UP_CALLS
    ratio = tf.where(is_warm, tf.stop_gradient(ratio), 1.0)
    shift = tf.where(is_warm, tf.stop_gradient(shift), 0.0)
    normalized = (inputs - mean) / deviation * ratio + shift
    self._running_mean.assign_add((1 - _DECAY) * (mean - before))
    self._running_variance.assign_add(
      (1 - _DECAY) * (variance - self._running_variance)
    )
    self._num_calls.assign_add(1.0)
    return normalized
