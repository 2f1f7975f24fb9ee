"""Layers that explore: noise on their weights, of a size that is learned."""

import math
from collections.abc import Callable

import sonnet as snt
import tensorflow as tf


class NoisyLinear(snt.Module):
  """Computes y = (μ_w + σ_w ⊙ ε_w) x + μ_b + σ_b ⊙ ε_b, ε new for each row.

  The noise is factorized, ε_w = f(ε_q) f(ε_p)ᵀ and ε_b = f(ε_q) with f(x) =
  sgn(x) √|x|, of p normal numbers for the inputs and q for the outputs. So no
  matrix of noise is ever made, and each row of a batch has noise of its own at
  the price of a second product with a matrix:

    y = μ_w x + μ_b + (σ_w (x ⊙ f(ε_p)) + σ_b) ⊙ f(ε_q)

  The noise is an argument: the layer draws nothing. See
  https://arxiv.org/abs/1706.10295, sections 3 and 3.2, for the equations and
  for how the variables begin.
  """

  def __init__(
    self,
    input_size: int,
    output_size: int,
    sigma: float,
    name: str = 'noisy_linear',
  ):
    """Makes the variables.

    Args:
      input_size: p.
      output_size: q.
      sigma: σ_0: all σ begin at σ_0 / √p.
    """
    super().__init__(name=name)
    self._sizes = [input_size, output_size]
    bound = 1 / math.sqrt(input_size)

    def make(kind: str, initialize: Callable[..., tf.Tensor]):
      weights = initialize(self._sizes, tf.float32)
      biases = initialize([output_size], tf.float32)
      return (
        tf.Variable(weights, name=f'{kind}_w'),
        tf.Variable(biases, name=f'{kind}_b'),
      )

    initial = snt.initializers.RandomUniform(-bound, bound)
    self._mu_w, self._mu_b = make('mu', initial)
    deviation = snt.initializers.Constant(sigma * bound)
    self._sigma_w, self._sigma_b = make('sigma', deviation)

  @property
  def noise_size(self) -> int:
    """Numbers that a row needs: p + q."""
    return sum(self._sizes)

  def __call__(
    self, inputs: tf.Tensor, noise: tf.Tensor | None = None
  ) -> tf.Tensor:
    """Maps inputs `[B, p]` and normal numbers `[B, p + q]` to `[B, q]`.

    Without noise it is the layer of the means, as for noise of 0.
    """
    means = tf.matmul(inputs, self._mu_w) + self._mu_b  # [B, q]
    if noise is None:
      return means
    scaled = tf.sign(noise) * tf.sqrt(tf.abs(noise))  # [B, p + q]
    of_inputs, of_outputs = tf.split(scaled, self._sizes, axis=-1)
    spread = tf.matmul(inputs * of_inputs, self._sigma_w) + self._sigma_b
    return means + spread * of_outputs  # [B, q]
