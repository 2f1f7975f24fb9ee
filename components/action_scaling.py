"""Between the actions of an environment and numbers in [−1, 1]."""

import numpy as np
import tensorflow as tf

from repertory.components import distributions, specs, types


class ActionScaling:
  """Maps [−1, 1] to the bounds of an action, and back.

  Agents for bounded actions compute with numbers in [−1, 1]: then networks,
  noise and entropies mean the same whatever an environment measures in. What
  it makes is within the bounds in the action's own dtype, rounding included.

  Attributes:
    size: D, numbers of an action.
  """

  def __init__(self, action_spec: types.Nest):
    """Reads shape, dtype and bounds off the spec.

    Args:
      action_spec: One array of floats with a least and a largest value.

    Raises:
      ValueError: If the spec is of another kind, a bound is missing, or the
        bounds of a number are equal: what rates actions could not tell that
        this number means nothing.
    """
    if not (
      isinstance(action_spec, specs.Array)
      and np.issubdtype(action_spec.dtype, np.floating)
      and np.prod(action_spec.shape) >= 1
    ):
      raise ValueError(
        'The action spec must be one array of floats that is not empty, got '
        f'{action_spec!r}.'
      )
    minimum, maximum = distributions.inward_bounds(action_spec)
    with np.errstate(invalid='ignore'):
      width = maximum / 2 - minimum / 2
      middle = maximum / 2 + minimum / 2
    if not (np.all(np.isfinite(middle)) and np.all(width > 0)):
      raise ValueError(
        'The action spec must have a finite least value for each number, and a '
        f'finite larger one, to scale actions to; got {action_spec!r}. Wrap '
        'the environment in one that states its bounds, without numbers that '
        'nobody can choose.'
      )
    self.size = int(np.prod(action_spec.shape))
    self._shape = action_spec.shape
    self._dtype = tf.as_dtype(action_spec.dtype)
    self._minimum, self._maximum = minimum.ravel(), maximum.ravel()
    self._middle, self._half_width = middle.ravel(), width.ravel()

  def to_action(self, scaled: tf.Tensor) -> tf.Tensor:
    """Turns `[B, D]` into actions of the spec, `[B, ...]`.

    Args:
      scaled: −1 is the least action and 1 the largest; numbers beyond are
        taken for these.
    """
    # A cast to the narrower dtype keeps the order, and bounds as they are.
    wide = self._middle + self._half_width * tf.cast(scaled, tf.float64)
    action = tf.clip_by_value(wide, self._minimum, self._maximum)
    return tf.reshape(tf.cast(action, self._dtype), [-1, *self._shape])

  def from_action(self, action: tf.Tensor) -> tf.Tensor:
    """Turns actions of the spec, `[B, ...]`, into `[B, D]` within [−1, 1]."""
    wide = tf.cast(tf.reshape(action, [-1, self.size]), tf.float64)
    scaled = (wide - self._middle) / self._half_width
    return tf.cast(tf.clip_by_value(scaled, -1.0, 1.0), tf.float32)
