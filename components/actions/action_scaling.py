"""Linear scaling between an environment's actions and [−1, 1]."""

import math

import numpy as np
import tensorflow as tf
import tree

from repertory.components import specs, types
from repertory.components.actions import action_parts


class ActionScaling:
  """Maps [−1, 1] to the bounds of an action, and back.

  Agents for bounded actions compute with numbers in [−1, 1], so that networks,
  noise and entropies do not depend on an environment's units. Results stay
  within the bounds in the action's own dtype, rounding included. An action of
  several parts is concatenated in the order of `tree.flatten`, which sorts
  mappings by key.

  Attributes:
    size: D, number of action dimensions.
  """

  def __init__(self, action_spec: types.Nest):
    """Reads shapes, dtypes and bounds from the spec.

    Args:
      action_spec: A bounded array of floats, or a nest of them.

    Raises:
      ValueError: If a part is of another kind, a bound is missing, or the
        bounds of a number are equal: a critic could not learn that this number
        has no effect.
    """
    parts = action_parts.parts_of(action_spec)
    bounds = [_bounds_of(*part) for part in parts]
    minimum, maximum = map(np.concatenate, zip(*bounds))  # [D]
    self._spec = action_spec
    self._specs = [part.spec for part in parts]
    self._sizes = [math.prod(spec.shape) for spec in self._specs]
    self.size = sum(self._sizes)
    self._minimum, self._maximum = minimum, maximum
    self._middle = maximum / 2 + minimum / 2
    self._half_width = maximum / 2 - minimum / 2

  def to_action(self, scaled: tf.Tensor) -> types.Nest:
    """Converts `[B, D]` into actions of the spec, `[B, ...]`.

    −1 is the least action and 1 the largest; numbers beyond are clipped.
    """
    # A cast to the narrower dtype keeps order and bounds.
    wide = self._middle + self._half_width * tf.cast(scaled, tf.float64)
    action = tf.clip_by_value(wide, self._minimum, self._maximum)
    parts = zip(tf.split(action, self._sizes, axis=-1), self._specs)
    return tree.unflatten_as(
      self._spec, [_shaped(part, spec) for part, spec in parts]
    )

  def from_action(self, action: types.Nest) -> tf.Tensor:
    """Converts the spec's actions, `[B, ...]`, into `[B, D]` in [−1, 1]."""
    # Sequences may have turned into tuples.
    leaves = tree.flatten_up_to(self._spec, action, check_types=False)
    flat = [
      tf.cast(tf.reshape(leaf, [-1, size]), tf.float64)
      for leaf, size in zip(leaves, self._sizes)
    ]
    scaled = (tf.concat(flat, axis=-1) - self._middle) / self._half_width
    return tf.cast(tf.clip_by_value(scaled, -1.0, 1.0), tf.float32)


def _bounds_of(name: str, spec: specs.Array) -> list[np.ndarray]:
  """Returns flat lower and upper bounds, or raises `ActionScaling`'s errors."""
  if not action_parts.is_continuous(spec):
    raise ValueError(
      f'{name} must be a non-empty array of floats, got {spec!r}.'
    )
  bounds = [bound.ravel() for bound in action_parts.bounds(spec)]
  is_finite = np.all(np.isfinite(bounds))
  if not is_finite or not np.all(bounds[1] / 2 - bounds[0] / 2 > 0):
    raise ValueError(
      f'{name} must have finite bounds for each number, the upper one larger '
      f'than the lower one, got {spec!r}. Wrap the environment in one that '
      'states its bounds and leaves out constant numbers.'
    )
  return bounds


def _shaped(flat: tf.Tensor, spec: specs.Array) -> tf.Tensor:
  """Converts `[B, D]` into `[B, ...]` of a spec's shape and dtype."""
  return tf.reshape(tf.cast(flat, tf.as_dtype(spec.dtype)), [-1, *spec.shape])
