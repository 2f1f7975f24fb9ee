"""Distributions over actions, told by what a network puts out.

A *sample* is what was drawn and what the log-probability is of; the
environment's action is made from it. For bounded continuous actions they
differ: samples are scaled to the bounds and clipped.
"""

import abc
import math

import numpy as np
import tensorflow as tf

from repertory.components import random_streams, specs

# Of a Gaussian: keeps log-probabilities finite when a policy gets certain.
_MIN_SCALE = 1e-3


class Distribution(abc.ABC):
  """A family of distributions; `parameters` `[..., P]` choose one of it.

  Attributes:
    num_parameters: P.
    sample_spec: Array spec of one sample.
  """

  num_parameters: int
  sample_spec: specs.Array

  @abc.abstractmethod
  def sample(
    self, parameters: tf.Tensor, counters: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Draws a sample for each row.

    Args:
      parameters: `[B, P]`.
      counters: Where the rows' random streams are, uint64 `[B]`.

    Returns:
      Samples `[B, ...]`, and the counters to go on with.
    """

  @abc.abstractmethod
  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    """Returns the most probable samples, `[B, ...]`."""

  @abc.abstractmethod
  def log_prob(self, parameters: tf.Tensor, sample: tf.Tensor) -> tf.Tensor:
    """Returns log p(sample), `[...]`, for `[..., P]` and `[..., *sample]`."""

  @abc.abstractmethod
  def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
    """Returns −E[log p], `[...]`, for parameters `[..., P]`."""

  @abc.abstractmethod
  def to_action(self, sample: tf.Tensor) -> tf.Tensor:
    """Turns samples `[B, ...]` into actions of the environment's spec."""


class Categorical(Distribution):
  """One of A actions; the parameters are its logits."""

  def __init__(self, action_spec: specs.DiscreteArray):
    """Reads A off the spec."""
    self.num_parameters = action_spec.num_values
    self.sample_spec = specs.Array((), np.int32)
    self._dtype = tf.as_dtype(action_spec.dtype)

  def sample(self, parameters, counters):
    uniform, _, counters = random_streams.next_uniforms(counters)  # [B]
    # The inverse of the distribution function. Its last value, 1, is left out,
    # for rounding might make it smaller than the number drawn.
    below = tf.cumsum(tf.nn.softmax(parameters), axis=-1)[:, :-1]  # [B, A − 1]
    reached = tf.cast(below <= uniform[:, None], tf.int32)
    return tf.reduce_sum(reached, axis=-1), counters

  def mode(self, parameters):
    return tf.argmax(parameters, axis=-1, output_type=tf.int32)

  def log_prob(self, parameters, sample):
    return -tf.nn.sparse_softmax_cross_entropy_with_logits(sample, parameters)

  def entropy(self, parameters):
    log_probs = tf.nn.log_softmax(parameters)  # [..., A]
    return -tf.reduce_sum(tf.exp(log_probs) * log_probs, axis=-1)

  def to_action(self, sample):
    return tf.cast(sample, self._dtype)


class DiagonalGaussian(Distribution):
  """Independent Gaussians; the parameters are means and unscaled deviations.

  A sample of 0 is the middle of the bounds, and ±1 are the bounds. Samples
  beyond become actions at the bounds, but keep the log-probability of what was
  drawn. An action without bounds is the sample itself.
  """

  def __init__(self, action_spec: specs.Array, initial_scale: float = 0.5):
    """Reads size and bounds off the spec.

    Args:
      action_spec: An array of floats.
      initial_scale: Deviation where its parameter is 0, but for the least one,
        which is added to all.
    """
    size = int(np.prod(action_spec.shape))
    self.num_parameters = 2 * size
    self.sample_spec = specs.Array(action_spec.shape, np.float32)
    self._shape = list(action_spec.shape)
    self._dtype = tf.as_dtype(action_spec.dtype)
    minimum, maximum = bounds(action_spec)
    self._minimum, self._maximum = inward_bounds(action_spec)
    is_bounded = np.isfinite(minimum) & np.isfinite(maximum)
    with np.errstate(invalid='ignore'):
      self._middle = np.where(is_bounded, minimum / 2 + maximum / 2, 0)
      self._half_width = np.where(is_bounded, maximum / 2 - minimum / 2, 1)
    # softplus(shift) = initial_scale.
    self._shift = math.log(math.expm1(initial_scale))

  def sample(self, parameters, counters):
    mean, scale = self._split(parameters)  # [B, D]
    noise, counters = random_streams.next_normals(counters, mean.shape[-1])
    return self._shaped(mean + scale * noise), counters

  def mode(self, parameters):
    return self._shaped(self._split(parameters)[0])

  def log_prob(self, parameters, sample):
    mean, scale = self._split(parameters)  # [..., D]
    flat = tf.reshape(sample, tf.shape(mean))
    errors = (flat - mean) / scale
    terms = -0.5 * errors**2 - tf.math.log(scale) - 0.5 * math.log(2 * math.pi)
    return tf.reduce_sum(terms, axis=-1)

  def entropy(self, parameters):
    _, scale = self._split(parameters)  # [..., D]
    terms = tf.math.log(scale) + 0.5 * math.log(2 * math.pi * math.e)
    return tf.reduce_sum(terms, axis=-1)

  def to_action(self, sample):
    scaled = self._middle + self._half_width * tf.cast(sample, tf.float64)
    clipped = tf.clip_by_value(scaled, self._minimum, self._maximum)
    return tf.cast(clipped, self._dtype)

  def _split(self, parameters: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns means and deviations, `[..., D]` each."""
    mean, unscaled = tf.split(parameters, 2, axis=-1)
    return mean, tf.nn.softplus(unscaled + self._shift) + _MIN_SCALE

  def _shaped(self, flat: tf.Tensor) -> tf.Tensor:
    return tf.reshape(flat, [-1, *self._shape])


def bounds(spec: specs.Array) -> tuple[np.ndarray, np.ndarray]:
  """Returns the least and the largest value, infinite where there is none."""
  shape = spec.shape
  minimum = getattr(spec, 'minimum', -np.inf)
  maximum = getattr(spec, 'maximum', np.inf)
  return (
    np.broadcast_to(np.asarray(minimum, np.float64), shape),
    np.broadcast_to(np.asarray(maximum, np.float64), shape),
  )


def inward_bounds(spec: specs.Array) -> tuple[np.ndarray, np.ndarray]:
  """Returns the bounds, narrowed where processors might round beyond them.

  TensorFlow takes subnormal numbers, those below `tiny`, for 0.

  Raises:
    ValueError: If all numbers between two bounds are taken for 0.
  """
  minimum, maximum = bounds(spec)
  tiny = float(np.finfo(spec.dtype).tiny)

  def raised(bound):
    is_subnormal = np.abs(bound) < tiny
    return np.where(is_subnormal, np.where(bound > 0, tiny, 0.0), bound)

  minimum, maximum = raised(minimum), -raised(-maximum)
  if np.any(minimum > maximum):
    raise ValueError(
      'The action spec must have a number between its bounds that processors '
      f'do not take for 0, got {spec!r}. Scale the actions.'
    )
  return minimum, maximum


def make_distribution(action_spec: specs.Array) -> Distribution:
  """Makes the distribution for an environment's actions.

  Raises:
    ValueError: If the action is neither one discrete nor one array of floats.
  """
  if isinstance(action_spec, specs.DiscreteArray):
    if np.issubdtype(action_spec.dtype, np.integer):
      return Categorical(action_spec)
  elif (
    isinstance(action_spec, specs.Array)
    and np.issubdtype(action_spec.dtype, np.floating)
    and np.prod(action_spec.shape) >= 1
  ):
    return DiagonalGaussian(action_spec)
  raise ValueError(
    'The action spec must be one DiscreteArray of integers, or one array of '
    f'floats that is not empty, got {action_spec!r}.'
  )
