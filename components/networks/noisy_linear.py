"""Noisy linear layer (NoisyNet)."""

import math
from collections.abc import Callable

import sonnet as snt
import tensorflow as tf


class NoisyLinear(snt.Module):
  """Noisy linear layer, y = (μ_w + σ_w ⊙ ε_w) x + μ_b + σ_b ⊙ ε_b.

  The noise is factorized, ε_w = f(ε_q) f(ε_p)ᵀ and ε_b = f(ε_q) with f(x) =
  sgn(x) √|x|, of p Gaussian samples for the inputs and q for the outputs. So
  there is no noise matrix, and each row of a batch has its own noise at the
  cost of a second matrix product:

    y = μ_w x + μ_b + (σ_w (x ⊙ f(ε_p)) + σ_b) ⊙ f(ε_q)

  The noise is an argument; the layer does not sample. See
  https://arxiv.org/abs/1706.10295, sections 3 and 3.2, for the equations and
  the initialization.
  """

  def __init__(
    self,
    input_size: int,
    output_size: int,
    sigma: float,
    name: str = 'noisy_linear',
  ):
    """Creates the variables.

    Args:
      input_size: p, number of inputs.
      output_size: q, number of outputs.
      sigma: σ_0; the initial σ is σ_0 / √p.
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
    """Size of the noise of a row, p + q."""
    return sum(self._sizes)

  def __call__(
    self, inputs: tf.Tensor, noise: tf.Tensor | None = None
  ) -> tf.Tensor:
    """Maps inputs `[B, p]` and Gaussian noise `[B, p + q]` to `[B, q]`.

    Without noise only the means are used.
    """
    means = tf.matmul(inputs, self._mu_w) + self._mu_b  # [B, q]
    if noise is None:
      return means
    scaled = tf.sign(noise) * tf.sqrt(tf.abs(noise))  # [B, p + q]
    of_inputs, of_outputs = tf.split(scaled, self._sizes, axis=-1)
    spread = tf.matmul(inputs * of_inputs, self._sigma_w) + self._sigma_b
    return means + spread * of_outputs  # [B, q]
