"""Prices of constraints that are learned with what they constrain."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

# Of the variable: softplus(-18) is 1.5e-8. Below, it could fall for ever, and
# would need as long to come back.
_MIN_RAW = -18.0
# Keeps what is divided by it finite.
_MIN_VALUE = 1e-8


class KLBound(NamedTuple):
  """How far a policy may go in a respect.

  Attributes:
    epsilon: The bound of each mean divergence.
    initial_alpha: Its price, a `DualVariable`, in the first gradient step.
  """

  epsilon: float
  initial_alpha: float


class DualVariable(tf.Module):
  """A Lagrange multiplier: softplus(x) + 10⁻⁸, so above 0, where x is learned.

  Unlike an exponential, softplus lets large ones change no faster than small
  ones. The floor is that of Acme, https://arxiv.org/abs/2006.00979.
  """

  def __init__(self, initial_value: float, shape: Sequence[int], name: str):
    """Makes the variable.

    Args:
      initial_value: Above 0.
      shape: `[]`, or that of several multipliers.
      name: What the variable is called.
    """
    super().__init__()
    # The inverse of softplus, log(exp(y) − 1), which cannot overflow.
    raw = initial_value + math.log(-math.expm1(-initial_value))
    self._raw = tf.Variable(tf.fill(shape, max(raw, _MIN_RAW)), name=name)

  def __call__(self) -> tf.Tensor:
    """Returns the multipliers, of the shape."""
    return tf.nn.softplus(self._raw) + _MIN_VALUE

  def limit(self) -> None:
    """Raises what a step of an optimizer has brought below the floor."""
    self._raw.assign(tf.maximum(self._raw, _MIN_RAW))
