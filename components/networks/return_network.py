"""Q-network with distributional, implicit-quantile and noisy extensions."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sonnet as snt
import tensorflow as tf

from repertory.components import specs, types
from repertory.components.actions import action_masks
from repertory.components.networks import heads, torsos


class NoisyLinear(snt.Module):
  """Noisy linear layer, y = (μ_w + σ_w ⊙ ε_w) x + μ_b + σ_b ⊙ ε_b.

  The noise, an argument, is factorized, ε_w = f(ε_q) f(ε_p)ᵀ and ε_b = f(ε_q)
  with f(x) = sgn(x) √|x|, of p Gaussian samples for the inputs and q for the
  outputs. So each row has its own at the cost of a second matrix product:

    y = μ_w x + μ_b + (σ_w (x ⊙ f(ε_p)) + σ_b) ⊙ f(ε_q)

  See https://arxiv.org/abs/1706.10295, sections 3 and 3.2.
  """

  def __init__(
    self,
    input_size: int,
    output_size: int,
    sigma: float,
    name: str = 'noisy_linear',
  ):
    """Creates variables for p inputs and q outputs, with σ = σ_0 / √p."""
    super().__init__(name=name)
    self._sizes = [input_size, output_size]
    bound = 1 / math.sqrt(input_size)

    def make(kind: str, initialize: Callable[..., tf.Tensor]):
      return (
        tf.Variable(initialize(shape, tf.float32), name=f'{kind}_{part}')
        for part, shape in (('w', self._sizes), ('b', [output_size]))
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


# n of the cosine embedding of τ: https://arxiv.org/abs/1806.06923, equation 4.
_NUM_COSINES = 64


class ReturnNetwork(snt.Module):
  """Q-network with up to three extensions.

  - Distributional: several outputs of each action, such as logits of atoms or
    quantiles.
  - Implicit quantiles (IQN): an output for each given τ. The features ψ before
    the last hidden layer are multiplied by the embedding of τ,
    φ_j(τ) = relu(Σ_i cos(π i τ) w_ij + b_j): https://arxiv.org/abs/1806.06923.
  - Noise (NoisyNet): all layers after the image torso are `NoisyLinear`, except
    the embedding of τ.

  With `dueling`, value and advantage streams on top of the shared hidden layers
  are combined for each output: https://arxiv.org/abs/1710.02298, section "The
  Integrated Agent".

  Attributes:
    noise_size: K, size of the noise of a row; 0 without noise.
    masks: Masks of the outputs, see `masked_network`; None for none.
  """

  masks: action_masks.ActionMasks | None = None

  def __init__(
    self,
    observation_spec: types.Nest,
    num_actions: int,
    hidden_sizes: Sequence[int],
    image_torso: str,
    *,
    dueling: bool = True,
    num_outputs: int | None = None,
    implicit: bool = False,
    noisy_sigma: float | None = None,
  ):
    """Creates the layers and their variables.

    Args:
      observation_spec: Nest of array specs, without a batch axis.
      num_actions: A, number of actions.
      hidden_sizes: Sizes of the shared ReLU layers.
      image_torso: Torso for images, one of `IMAGE_TORSOS` or 'auto'.
      dueling: Whether to use the dueling architecture.
      num_outputs: N, outputs of each action; None for a single one, and if
        implicit.
      implicit: Whether to compute an output of each action for each given τ.
      noisy_sigma: σ_0 of `NoisyLinear`; None for no noise.

    Raises:
      ValueError: As by `check_observation`.
    """
    super().__init__(name='return_network')
    if implicit and num_outputs is not None:
      raise ValueError(
        f'num_outputs must be None if implicit, got {num_outputs}.'
      )
    self._num_actions, self._num_outputs = num_actions, num_outputs
    self._torso = torsos.ObservationTorso(observation_spec, (), image_torso)
    features = self._torso(specs.zeros(observation_spec, 1))  # [1, D]
    sizes = [features.shape[-1], *hidden_sizes]
    self._hidden = [
      _make_linear(sizes[i], size, noisy_sigma, f'hidden_{i}')
      for i, size in enumerate(hidden_sizes)
    ]
    self._num_before_tau = max(len(hidden_sizes) - 1, 0)
    self._tau: Any = None
    if implicit:
      self._tau = _make_linear(
        _NUM_COSINES, sizes[self._num_before_tau], None, 'tau'
      )
    width = num_outputs or 1
    self._streams = [
      _make_linear(sizes[-1], num_actions * width, noisy_sigma, 'advantage')
    ]
    if dueling:
      self._streams.append(_make_linear(sizes[-1], width, noisy_sigma, 'value'))
    self._noise_sizes = [
      layer.noise_size if isinstance(layer, NoisyLinear) else 0
      for layer in (*self._hidden, *self._streams)
    ]
    self.noise_size = sum(self._noise_sizes)

  def __call__(
    self,
    observation: types.Nest,
    taus: tf.Tensor | None = None,
    noise: tf.Tensor | None = None,
  ) -> tf.Tensor:
    """Computes the outputs of all actions.

    Args:
      observation: `[B, ...]`.
      taus: τ in [0, 1], `[B, N]`, or `[1, N]` for all rows; None unless the
        network is implicit.
      noise: Gaussian noise `[B, K]`; None for no noise.

    Returns:
      `[B, A]` if `num_outputs` is None and there is no τ, else `[B, A, N]`.
    """
    noises = [()] * len(self._noise_sizes)
    if noise is not None:
      noises = [(one,) for one in tf.split(noise, self._noise_sizes, axis=-1)]
    n = self._num_before_tau
    mask = None if self.masks is None else self.masks(observation)  # [B, A]
    features = self._torso(observation)  # [B, D]
    features = _apply_hidden(self._hidden[:n], features, noises[:n])
    if taus is None:
      outputs = self._head(features, noises[n:], mask)  # [B, A, N]
      return tf.squeeze(outputs, -1) if self._num_outputs is None else outputs
    num_taus = taus.shape[1]
    noises = [
      tuple(tf.repeat(one, num_taus, axis=0) for one in own) for own in noises
    ]
    features = self._join(features, taus)  # [B · N, D]
    if mask is not None:
      mask = tf.repeat(mask, num_taus, axis=0)
    outputs = self._head(features, noises[n:], mask)  # [B · N, A, 1]
    outputs = tf.reshape(outputs, [-1, num_taus, self._num_actions])
    return tf.transpose(outputs, [0, 2, 1])  # [B, A, N]

  def _join(self, features: tf.Tensor, taus: tf.Tensor) -> tf.Tensor:
    """Multiplies features `[B, D]` by the embeddings of τ, to `[B · N, D]`."""
    size = features.shape[-1]
    multiples = np.pi * np.arange(_NUM_COSINES, dtype=np.float32)
    cosines = tf.cos(tf.reshape(taus, [-1, 1]) * multiples)  # [B · N, n]
    of_taus = tf.nn.relu(self._tau(cosines))  # [B · N, D]
    of_taus = tf.reshape(of_taus, [-1, taus.shape[1], size])  # [B, N, D]
    return tf.reshape(features[:, None] * of_taus, [-1, size])

  def _head(
    self,
    features: tf.Tensor,
    noises: Sequence[tuple[tf.Tensor, ...]],
    mask: tf.Tensor | None,
  ) -> tf.Tensor:
    """Maps features `[B, D]`, after the product with τ, to `[B, A, N]`."""
    hidden = self._hidden[self._num_before_tau :]
    x = _apply_hidden(hidden, features, noises[: len(hidden)])
    width = self._num_outputs or 1
    advantage, *values = (
      layer(x, *noise)
      for layer, noise in zip(self._streams, noises[len(hidden) :], strict=True)
    )
    advantage = tf.reshape(advantage, [-1, self._num_actions, width])
    outputs = advantage
    if values:
      mean = heads.mean_advantage(advantage, mask)  # [B, 1, N]
      outputs = values[0][:, None] + advantage - mean
    return outputs if mask is None else action_masks.apply(outputs, mask)


def _make_linear(
  input_size: int, output_size: int, sigma: float | None, name: str
) -> snt.Module:
  """Creates a layer with its variables, noisy unless σ_0 is None."""
  if sigma is not None:
    return NoisyLinear(input_size, output_size, sigma, name)
  layer = snt.Linear(output_size, name=name)
  layer(tf.zeros([1, input_size]))
  return layer


def _apply_hidden(
  layers: Sequence[Any], x: tf.Tensor, noises: Sequence[tuple[tf.Tensor, ...]]
) -> tf.Tensor:
  for layer, noise in zip(layers, noises, strict=True):
    x = tf.nn.relu(layer(x, *noise))
  return x
