"""Lagrange multipliers, learned along with a constrained policy."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

# Lower bound of the variable: softplus(-18) is 1.5e-8. Below, it could fall
# without limit and would take as long to recover.
_MIN_RAW = -18.0
# Keeps quotients by it finite.
_MIN_VALUE = 1e-8


class KLBound(NamedTuple):
  """Bound on the KL divergence of a policy update.

  Attributes:
    epsilon: Bound on each mean divergence.
    initial_alpha: Initial value of its multiplier, a `DualVariable`.
  """

  epsilon: float
  initial_alpha: float


class DualVariable(tf.Module):
  """A Lagrange multiplier, softplus(x) + 10⁻⁸ > 0, where x is learned.

  Unlike an exponential, softplus lets large values change no faster than small
  ones. The offset is Acme's, https://arxiv.org/abs/2006.00979.
  """

  def __init__(self, initial_value: float, shape: Sequence[int], name: str):
    """Creates the variable.

    Args:
      initial_value: Above 0.
      shape: `[]`, or the shape of several multipliers.
      name: Name of the variable.
    """
    super().__init__()
    # The inverse of softplus, log(exp(y) − 1), which cannot overflow.
    raw = initial_value + math.log(-math.expm1(-initial_value))
    self._raw = tf.Variable(tf.fill(shape, max(raw, _MIN_RAW)), name=name)

  def __call__(self) -> tf.Tensor:
    """Returns the multipliers."""
    return tf.nn.softplus(self._raw) + _MIN_VALUE

  def limit(self) -> None:
    """Clips the variable from below, after a step of an optimizer."""
    self._raw.assign(tf.maximum(self._raw, _MIN_RAW))
