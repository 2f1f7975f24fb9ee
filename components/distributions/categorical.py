"""Categorical distributions over one or several integer actions."""

import numpy as np
import tensorflow as tf

from repertory.components import losses, specs
from repertory.components.actions import action_parts
from repertory.components.distributions import distribution, inverse_cdf
from repertory.components.runtime import random_streams

# Logit of padded choices: far below any logit of a network, yet finite.
_NO_CHOICE = -1e30


class Categorical(distribution.Distribution):
  """Categorical distribution over A actions, parameterized by logits."""

  kl_parts = ('policy',)

  def __init__(self, action_spec: specs.DiscreteArray):
    self.num_parameters = action_spec.num_values
    self.sample_spec = specs.Array((), np.int32)
    self._dtype = tf.as_dtype(action_spec.dtype)

  def sample(self, parameters, counters):
    uniform, _, counters = random_streams.next_uniforms(counters)  # [B]
    return _draw(parameters, uniform), counters

  def mode(self, parameters):
    return tf.argmax(parameters, axis=-1, output_type=tf.int32)

  def log_prob(self, parameters, sample):
    return -tf.nn.sparse_softmax_cross_entropy_with_logits(sample, parameters)

  def entropy(self, parameters):
    log_probs = tf.nn.log_softmax(parameters)  # [..., A]
    return -tf.reduce_sum(tf.exp(log_probs) * log_probs, axis=-1)

  def kl(self, parameters, others):
    return {'policy': losses.categorical_kl(parameters, others)}

  def to_action(self, sample):
    if isinstance(sample, np.ndarray):
      return sample.astype(self._dtype.as_numpy_dtype)
    return tf.cast(sample, self._dtype)


class MultiCategorical(distribution.Distribution):
  """Independent categorical distributions over the integers of an action.

  The parameters are the logits of all choices: those of the first integer, then
  those of the second one, and so on. Samples are counted from 0, whatever the
  lower bounds of the action.
  """

  kl_parts = ('policy',)

  def __init__(self, action_spec: specs.BoundedArray):
    self._minimum, counts = action_parts.choices_of(action_spec)
    self._counts = counts = counts.ravel()  # [K]
    self.num_parameters = int(counts.sum())
    self.sample_spec = specs.Array(action_spec.shape, np.int32)
    self._shape = list(action_spec.shape)
    self._dtype = tf.as_dtype(action_spec.dtype)

  def sample(self, parameters, counters):
    logits = self._logits(parameters)  # [B, K, A]
    uniforms, counters = random_streams.next_uniform_vectors(
      counters, len(self._counts)
    )  # [B, K]
    return self._shaped(_draw(logits, uniforms)), counters

  def mode(self, parameters):
    best = tf.argmax(self._logits(parameters), -1, output_type=tf.int32)
    return self._shaped(best)

  def log_prob(self, parameters, sample):
    logits = self._logits(parameters)  # [..., K, A]
    flat = tf.reshape(sample, tf.shape(logits)[:-1])
    terms = tf.nn.sparse_softmax_cross_entropy_with_logits(flat, logits)
    return -tf.reduce_sum(terms, axis=-1)

  def entropy(self, parameters):
    log_probs = tf.nn.log_softmax(self._logits(parameters))  # [..., K, A]
    return -tf.reduce_sum(tf.exp(log_probs) * log_probs, axis=[-2, -1])

  def kl(self, parameters, others):
    terms = losses.categorical_kl(
      self._logits(parameters), self._logits(others)
    )  # [..., K]
    return {'policy': tf.reduce_sum(terms, axis=-1)}

  def to_action(self, sample):
    action = tf.cast(sample, self._dtype)
    return action + self._minimum if self._minimum.any() else action

  def _logits(self, parameters: tf.Tensor) -> tf.Tensor:
    """Returns logits `[..., K, A]`, padded to the most choices, A."""
    if np.all(self._counts == self._counts[0]):
      leading = tf.shape(parameters)[:-1]
      shape = [len(self._counts), self._counts[0]]
      return tf.reshape(parameters, tf.concat([leading, shape], 0))
    most = self._counts.max()
    no_padding = [[0, 0]] * (parameters.shape.rank - 1)
    parts = tf.split(parameters, self._counts, axis=-1)
    rows = [
      tf.pad(part, [*no_padding, [0, most - n]], constant_values=_NO_CHOICE)
      for part, n in zip(parts, self._counts)
    ]
    return tf.stack(rows, axis=-2)

  def _shaped(self, flat: tf.Tensor) -> tf.Tensor:
    return tf.reshape(flat, [-1, *self._shape])


def choose_in_numpy(
  logits: np.ndarray,
  counters: np.ndarray,
  uniforms: random_streams.NumpyUniforms | None,
) -> tuple[np.ndarray, np.ndarray]:
  """Samples from a `Categorical` of logits `[B, A]`; the mode for None."""
  if uniforms is None:
    return logits.argmax(-1).astype(np.int32), counters
  uniform, _, counters = uniforms(counters)
  weights = np.exp(logits - np.maximum.reduce(logits, -1, keepdims=True))
  weights = weights / np.add.reduce(weights, -1, keepdims=True)
  # See `inverse_cdf.find`.
  is_present = weights > 0
  is_beyond = is_present & (weights.cumsum(-1) > uniform[:, None])
  sample = is_beyond.argmax(-1)
  is_found = is_beyond[np.arange(len(sample)), sample]
  if False in is_found.tolist():
    last = weights.shape[-1] - 1 - is_present[:, ::-1].argmax(-1)
    sample = np.where(is_found, sample, last)
  return sample.astype(np.int32), counters


def log_prob_in_numpy(logits: np.ndarray, sample: np.ndarray) -> np.ndarray:
  """Returns log p(sample) of a `Categorical`, `[B]`, in NumPy."""
  shifted = logits - np.maximum.reduce(logits, -1, keepdims=True)
  chosen = shifted[np.arange(len(sample)), sample]
  return chosen - np.log(np.add.reduce(np.exp(shifted), -1))


def _draw(logits: tf.Tensor, uniforms: tf.Tensor) -> tf.Tensor:
  """Samples int32 `[...]` from logits `[..., A]` and uniforms `[...]`."""
  probabilities = tf.nn.softmax(logits)
  sums = tf.cumsum(probabilities, axis=-1)
  return inverse_cdf.find(sums, probabilities, uniforms)
