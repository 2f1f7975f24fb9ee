"""Trunks: hidden layers by name, from plain MLPs to SimBa."""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

import sonnet as snt
import tensorflow as tf

from repertory.components.config import choices
from repertory.components.runtime import data_parallel


class LayerNormMLP(snt.Module):
  """MLP of Acme: layer normalization and tanh after the first layer, then ELU.

  See https://arxiv.org/abs/1607.06450 and https://arxiv.org/abs/2006.00979.
  """

  def __init__(self, hidden_sizes: Sequence[int]):
    """Creates layers of the given sizes, at least one; the last one is D."""
    super().__init__(name='layer_norm_mlp')
    first, *others = hidden_sizes
    self._linear = snt.Linear(first, name='first')
    self._norm = _make_norm()
    self._mlp = snt.nets.MLP(others, activation=tf.nn.elu, activate_final=True)

  def __call__(self, inputs: tf.Tensor) -> tf.Tensor:
    """Maps inputs `[B, F]` to features `[B, D]`."""
    return self._mlp(tf.tanh(self._norm(self._linear(inputs))))


class NormalizedMLP(snt.Module):
  """MLP of linear layers, each with layer normalization and ReLU.

  Layer normalization (https://arxiv.org/abs/1607.06450) stabilizes Q-learning
  without target networks: PQN, https://arxiv.org/abs/2407.04811, section 3.2.
  """

  def __init__(self, hidden_sizes: Sequence[int]):
    """Creates layers of the given sizes; the last one is D."""
    super().__init__(name='normalized_mlp')
    self._sizes = list(hidden_sizes)
    self._layers = [
      (snt.Linear(size, name=f'linear_{i}'), _make_norm(f'norm_{i}'))
      for i, size in enumerate(hidden_sizes)
    ]

  def __call__(
    self, inputs: tf.Tensor, mask: tf.Tensor | None = None
  ) -> tf.Tensor:
    """Maps inputs `[B, F]` to features `[B, D]`.

    Args:
      mask: Dropout mask, multiplied with the outputs of the linear layers
        before normalization (https://arxiv.org/abs/2110.02034), `[B, S]` with S
        the sum of the sizes. None for no dropout.
    """
    masks = [None] * len(self._layers)
    if mask is not None:
      masks = tf.split(mask, self._sizes, axis=-1)
    for (linear, norm), factors in zip(self._layers, masks):
      outputs = linear(inputs)
      if factors is not None:
        outputs *= factors
      inputs = tf.nn.relu(norm(outputs))
    return inputs


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

  def __init__(self, hidden_sizes: Sequence[int]):
    """Creates layers of the given sizes; the last one is D."""
    super().__init__(name='batch_renorm_mlp')
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
    """Maps `[B, F]` to `[B, F]`, or `[N, B, F]` with variables `[N, 1, F]`."""
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
    mean, variance = tf.nn.moments(
      inputs, axes=[-2], keepdims=inputs.shape.rank > 2
    )  # [F] or [N, 1, F]
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


class SimBa(snt.Module):
  """SimBa: a linear layer, residual blocks and a final layer normalization.

  A block adds to its inputs the outputs of a two-layer MLP on the normalized
  inputs: https://arxiv.org/abs/2410.09754, section 4. The paper's running
  normalization of observations is not included.
  """

  def __init__(self, hidden_sizes: Sequence[int]):
    """Creates blocks of the given sizes, at least one and all of them D."""
    super().__init__(name='simba')
    if len(set(hidden_sizes)) != 1:
      raise ValueError(
        f'hidden_sizes must be one or more equal sizes, got {hidden_sizes}.'
      )
    self._linear = snt.Linear(
      hidden_sizes[0], w_init=snt.initializers.Orthogonal(), name='linear'
    )
    self._blocks = [
      _Block(size, name=f'block_{i}') for i, size in enumerate(hidden_sizes)
    ]
    self._norm = _make_norm()

  def __call__(self, inputs: tf.Tensor) -> tf.Tensor:
    """Maps inputs `[B, F]` to features `[B, D]`."""
    features = self._linear(inputs)  # [B, D]
    for block in self._blocks:
      features += block(features)
    return self._norm(features)


class _Block(snt.Module):
  def __init__(self, size: int, name: str):
    super().__init__(name=name)
    # He initialization, for ReLU: https://arxiv.org/abs/1502.01852.
    w_init = snt.initializers.VarianceScaling(2.0, 'fan_in')
    self._norm = _make_norm()
    self._inner = snt.Linear(4 * size, w_init=w_init, name='inner')
    self._outer = snt.Linear(size, w_init=w_init, name='outer')

  def __call__(self, inputs: tf.Tensor) -> tf.Tensor:
    hidden = tf.nn.relu(self._inner(self._norm(inputs)))  # [B, 4 D]
    return self._outer(hidden)  # [B, D]


def _make_norm(name: str | None = None) -> snt.LayerNorm:
  return snt.LayerNorm(-1, create_scale=True, create_offset=True, name=name)


BODIES: Mapping[str, Callable[[Sequence[int]], snt.Module]] = {
  'mlp': functools.partial(snt.nets.MLP, activate_final=True),
  'layer_norm_mlp': LayerNormMLP,
  'normalized_mlp': NormalizedMLP,
  'batch_renorm_mlp': BatchRenormMLP,
  'simba': SimBa,
}


def make_trunk(kind: str, hidden_sizes: Sequence[int]) -> snt.Module:
  """Creates hidden layers that map inputs `[B, F]` to features `[B, D]`.

  Args:
    kind: One of `BODIES`; 'mlp' has a ReLU after each layer.
    hidden_sizes: Sizes of the layers; the last one is D.

  Raises:
    ValueError: If the kind is unknown or the sizes are invalid.
  """
  choices.check('kind', kind, BODIES)
  return BODIES[kind](hidden_sizes)
