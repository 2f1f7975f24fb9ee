"""AMSGrad: Adam with a non-decreasing second moment."""

from collections.abc import Sequence

import tensorflow as tf

# β2: that of Adam's authors, arXiv:1412.6980, section 2.
_SQUARE_DECAY = 0.999


class AMSGrad(tf.Module):
  """AMSGrad: divides by the largest second moment so far.

  Adam divides by the current one. Once a task is solved and gradients are mere
  noise, it shrinks with them, and the noise causes steps nearly as large as
  those that solved the task. See https://arxiv.org/abs/1904.09237, algorithm 2;
  with g_t the gradient and x the variable,

    m_t = β1 m_{t−1} + (1 − β1) g_t
    v_t = β2 v_{t−1} + (1 − β2) g_t²
    v̂_t = max(v̂_{t−1}, v_t)
    x_t = x_{t−1} − α (m_t / (1 − β1^t)) / (√(v̂_t / (1 − β2^t)) + ε)

  with Adam's bias corrections, which the paper leaves out.
  """

  def __init__(
    self,
    variables: Sequence[tf.Variable],
    learning_rate: float | tf.Variable,
    epsilon: float,
    first_decay: float = 0.9,
  ):
    """Creates the moments.

    Args:
      variables: x, the variables to learn.
      learning_rate: α; a variable if it changes.
      epsilon: ε, added to the denominator.
      first_decay: β1, decay of the first moment.
    """
    super().__init__()
    self._learning_rate = learning_rate
    self._epsilon = epsilon
    self._first_decay = first_decay
    self._step = tf.Variable(0, dtype=tf.int64, trainable=False, name='t')
    self._means = _zeros(variables, 'm')
    self._squares = _zeros(variables, 'v')
    self._largest = _zeros(variables, 'v_max')

  def apply(
    self, updates: Sequence[tf.Tensor | None], parameters: Sequence[tf.Variable]
  ) -> None:
    """Takes a step.

    Args:
      updates: g_t, one per variable; None where the loss does not depend on it.
      parameters: The variables passed to the constructor.
    """
    step = tf.cast(self._step.assign_add(1), tf.float32)
    decay = self._first_decay
    rate = self._learning_rate / (1 - decay**step)
    correction = 1 - _SQUARE_DECAY**step
    for gradient, variable, mean, square, largest in zip(
      updates,
      parameters,
      self._means,
      self._squares,
      self._largest,
      strict=True,
    ):
      if gradient is None:
        continue
      mean.assign(decay * mean + (1 - decay) * gradient)
      square.assign(_SQUARE_DECAY * square + (1 - _SQUARE_DECAY) * gradient**2)
      largest.assign(tf.maximum(largest, square))
      scale = tf.sqrt(largest / correction) + self._epsilon
      variable.assign_sub(rate * mean / scale)


def _zeros(variables: Sequence[tf.Variable], name: str) -> list[tf.Variable]:
  return [
    tf.Variable(tf.zeros_like(variable), trainable=False, name=name)
    for variable in variables
  ]
