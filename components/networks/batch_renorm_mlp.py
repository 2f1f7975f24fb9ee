"""An MLP whose inputs and layers are normalized over the batch."""

import contextlib
import threading
from collections.abc import Iterator, Sequence

import sonnet as snt
import tensorflow as tf

from repertory.components import data_parallel

# Of the authors of CrossQ, https://arxiv.org/abs/1902.05605, in their code.
_DECAY = 0.99
_EPSILON = 1e-3
_NUM_WARM_UP_CALLS = 100_000
_MAX_RATIO, _MAX_SHIFT = 3.0, 5.0

_scope = threading.local()


@contextlib.contextmanager
def batch_statistics() -> Iterator[None]:
  """Has `BatchRenormMLP`s normalize by the batch, in what is traced inside.

  And take the batch into their running statistics, by which they normalize
  elsewhere. Other networks do inside what they do outside.
  """
  before = getattr(_scope, 'is_active', False)
  _scope.is_active = True
  try:
    yield
  finally:
    _scope.is_active = before


class BatchRenormMLP(snt.Module):
  """Batch renormalization; then linear, ReLU and again, for each size.

  Rows of a batch depend on each other inside `batch_statistics`. Q-learning
  does without target networks where states and next states are one batch:
  https://arxiv.org/abs/1902.05605.
  """

  def __init__(
    self, hidden_sizes: Sequence[int], name: str = 'batch_renorm_mlp'
  ):
    """Makes the layers; their variables come with the first call.

    Args:
      hidden_sizes: The last one's size is D.
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
  """Shifts and scales numbers by what they are in the batch, and were before.

  See https://arxiv.org/abs/1702.03275, algorithm 1. In the first calls the
  batch alone counts, until the running statistics can be relied on.
  """

  @snt.once
  def _make_variables(self, size: int) -> None:
    zeros, ones = tf.zeros([size]), tf.ones([size])
    self._scale = tf.Variable(ones, name='scale')
    self._offset = tf.Variable(zeros, name='offset')
    self._running_mean = tf.Variable(zeros, trainable=False, name='mean')
    self._running_variance = tf.Variable(ones, trainable=False, name='variance')
    # A float, so that target networks may follow in all variables.
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
        'Statistics of a batch need the whole of it, and rows are divided over '
        "devices: name one device, or choose other layers than 'batch_renorm_"
        "mlp'."
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
