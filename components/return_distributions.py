"""How action values tell the return: as its mean, or as its distribution.

A network says something of each action, `[B, A, ...]`. What that means, which
values follow from it, and what the loss is, is said here, in one shape for all.
"""

import abc
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from repertory.components import losses
from repertory.components.losses import ranks


class Noise(Protocol):
  """Draws the numbers of an update, as `learners.UpdateNoise` does."""

  def uniforms(self, shape: Sequence[int | tf.Tensor]) -> tf.Tensor:
    """Returns new numbers in [0, 1), float32."""
    ...


class Bootstrap(NamedTuple):
  """What the actions of the next state count in a target.

  Attributes:
    outputs: What the target network says of K actions, `[B, K, ...]`.
    weights: Their probabilities, `[B, K]`.
    bonuses: What is added to the return of each, `[B, K]`.
  """

  outputs: tf.Tensor
  weights: tf.Tensor
  bonuses: tf.Tensor


def greedy_bootstrap(outputs: tf.Tensor, q: tf.Tensor) -> Bootstrap:
  """Counts the action of the largest value alone.

  Values of the online network make it double Q-learning,
  https://arxiv.org/abs/1509.06461, those of the target network plain one.

  Args:
    outputs: What the target network says of the next state, `[B, A, ...]`.
    q: Values that choose the action, `[B, A]`.
  """
  actions = tf.argmax(q, axis=-1, output_type=tf.int32)  # [B]
  chosen = tf.gather(outputs, actions[:, None], batch_dims=1)  # [B, 1, ...]
  ones = tf.ones_like(q[:, :1])  # [B, 1]
  return Bootstrap(chosen, weights=ones, bonuses=tf.zeros_like(ones))


def soft_bootstrap(
  outputs: tf.Tensor, q: tf.Tensor, temperature: float
) -> Bootstrap:
  """Counts all actions by π = softmax(q / τ), each with a bonus −τ log π.

  See https://arxiv.org/abs/2007.14430, section 2.

  Args:
    outputs: What the target network says of the next state, `[B, A, ...]`.
    q: Its values there, `[B, A]`.
    temperature: τ, above 0.
  """
  scaled = losses.scaled_log_policy(q, temperature)  # [B, A]
  return Bootstrap(outputs, tf.exp(scaled / temperature), bonuses=-scaled)


class ItemLosses(NamedTuple):
  """What a batch costs.

  Attributes:
    losses: To be lowered, `[B]`.
    errors: Target less value, each the expected return, `[B]`.
    priorities: With which items are to be sampled again, `[B]`, at least 0.
    metrics: Further scalars by name.
  """

  losses: tf.Tensor
  errors: tf.Tensor
  priorities: tf.Tensor
  metrics: Mapping[str, tf.Tensor]


class ReturnDistribution(abc.ABC):
  """What the outputs of a network mean.

  Only implicit quantiles ask the network for certain τ: for the others all τ
  here are None, and outputs are the same for every purpose.
  """

  @abc.abstractmethod
  def values(self, outputs: tf.Tensor) -> tf.Tensor:
    """Maps outputs `[B, A, ...]` to action values `[B, A]`.

    Raises:
      ValueError: If they are of another kind.
    """

  @abc.abstractmethod
  def compare(
    self,
    outputs_tm1: tf.Tensor,
    taus_tm1: tf.Tensor | None,
    r_t: tf.Tensor,
    discount_t: tf.Tensor,
    bootstrap: Bootstrap,
  ) -> ItemLosses:
    """Compares what is said of the actions taken with what came of them.

    The target is r + γ Σ_a w_a (Z(s', a) + b_a); no gradient flows into it.

    Args:
      outputs_tm1: What is said of the state before and the action taken, `[B,
        ...]`.
      taus_tm1: The τ of these, from `sample_taus`.
      r_t: Rewards, `[B]`.
      discount_t: Discounts of the bootstrap value, γ included, `[B]`.
      bootstrap: What is said of the next state.

    Raises:
      ValueError: If a shape does not fit, as of outputs of another kind.
    """

  def policy_taus(self, batch_size: int | tf.Tensor) -> tf.Tensor | None:
    """Returns the τ whose outputs have `values`."""
    del batch_size
    return None

  def sample_taus(
    self, noise: Noise, batch_size: int | tf.Tensor
  ) -> tf.Tensor | None:
    """Draws the τ at which the online network is to learn."""
    del noise, batch_size
    return None

  def target_taus(
    self, noise: Noise, batch_size: int | tf.Tensor
  ) -> tf.Tensor | None:
    """Returns the τ whose outputs `read_target` takes."""
    del noise, batch_size
    return None

  def read_target(self, outputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns values `[B, A]` of a target network, and what it tells a target.

    Args:
      outputs: `[B, A, ...]`, at `target_taus`.
    """
    return self.values(outputs), outputs


class ExpectedReturn(ReturnDistribution):
  """Its mean alone, a number of each action: outputs are `[B, A]`.

  The loss is the Huber loss of the error, and the priority its size.
  """

  def __init__(self, huber_threshold: float):
    """Keeps where the Huber loss turns linear."""
    self._threshold = huber_threshold

  def values(self, outputs: tf.Tensor) -> tf.Tensor:
    ranks.check_ranks(outputs=(outputs, 2))
    return outputs

  def compare(self, outputs_tm1, taus_tm1, r_t, discount_t, bootstrap):
    del taus_tm1
    ranks.check_ranks(outputs_tm1=(outputs_tm1, 1))
    targets = r_t + discount_t * _expected(bootstrap)  # [B]
    errors = tf.stop_gradient(targets) - outputs_tm1  # [B]
    return ItemLosses(
      losses.huber(errors, self._threshold), errors, tf.abs(errors), {}
    )


class CategoricalReturn(ReturnDistribution):
  """Logits of N atoms of a fixed support, `[B, A, N]`.

  C51, https://arxiv.org/abs/1707.06887. The loss is the divergence from the
  target, and so is the priority: https://arxiv.org/abs/1710.02298.
  """

  def __init__(self, vmin: float, vmax: float, num_atoms: int):
    """Makes the support.

    Args:
      vmin: The smallest atom.
      vmax: The largest atom, above `vmin`.
      num_atoms: N, at least 2; evenly spread.
    """
    # Of NumPy: an exported model holds no tensor that was made outside of it.
    self._atoms = np.linspace(vmin, vmax, num_atoms, dtype=np.float32)  # [N]

  def values(self, outputs: tf.Tensor) -> tf.Tensor:
    ranks.check_ranks(outputs=(outputs, 3))
    return tf.reduce_sum(tf.nn.softmax(outputs) * self._atoms, axis=-1)

  def compare(self, outputs_tm1, taus_tm1, r_t, discount_t, bootstrap):
    del taus_tm1
    targets = losses.categorical_mixture_targets(
      r_t, discount_t, *bootstrap, z=tf.constant(self._atoms)
    )  # [B, N]
    divergences = losses.categorical_divergence(targets, outputs_tm1)  # [B]
    mean = losses.categorical_mean(outputs_tm1, tf.constant(self._atoms))  # [B]
    errors = tf.reduce_sum(targets * self._atoms, axis=-1) - mean  # [B]
    # What the ends of the support hold is a sign that it is too narrow.
    at_ends = tf.reduce_mean(targets[:, 0] + targets[:, -1])
    # Below 0 by rounding alone.
    priorities = tf.maximum(divergences, 0)
    return ItemLosses(
      divergences, errors, priorities, {'share_at_ends': at_ends}
    )


class QuantileReturn(ReturnDistribution):
  """N quantiles at τ̂_i = (i + ½) / N, `[B, A, N]`.

  QR-DQN, https://arxiv.org/abs/1710.10044. The loss is the quantile Huber loss;
  the priority is the size of the error of the mean, which, unlike that loss,
  vanishes where nothing is left to learn.
  """

  def __init__(self, num_quantiles: int, huber_threshold: float):
    """Keeps the settings.

    Args:
      num_quantiles: N.
      huber_threshold: κ.
    """
    self._num_quantiles = num_quantiles
    self._threshold = huber_threshold

  def values(self, outputs: tf.Tensor) -> tf.Tensor:
    ranks.check_ranks(outputs=(outputs, 3))
    return tf.reduce_mean(outputs, axis=-1)

  def compare(self, outputs_tm1, taus_tm1, r_t, discount_t, bootstrap):
    if taus_tm1 is None:
      taus_tm1 = losses.quantile_midpoints(self._num_quantiles)[None]  # [1, N]
    # Quantiles are averaged over actions, not mixed: M-IQN's target.
    targets = r_t[:, None] + discount_t[:, None] * _expected(bootstrap)
    errors = tf.reduce_mean(targets, axis=-1) - tf.reduce_mean(
      outputs_tm1, axis=-1
    )  # [B]
    of_items = losses.quantile_huber(
      outputs_tm1, taus_tm1, targets, self._threshold
    )  # [B]
    return ItemLosses(of_items, errors, tf.abs(errors), {})


class ImplicitQuantileReturn(QuantileReturn):
  """Quantiles at any τ that the network is asked for, `[B, A, N]`.

  IQN, https://arxiv.org/abs/1806.06923. Values are means over τ that are evenly
  spread, so there is no chance in them.
  """

  def __init__(
    self,
    num_taus: int,
    num_target_taus: int,
    num_policy_taus: int,
    huber_threshold: float,
  ):
    """Keeps the settings.

    Args:
      num_taus: N, drawn for the first state.
      num_target_taus: N', drawn for the next one.
      num_policy_taus: K, evenly spread, of which values are the mean.
      huber_threshold: κ.
    """
    super().__init__(num_policy_taus, huber_threshold)
    self._num_taus = num_taus
    self._num_target_taus = num_target_taus

  def policy_taus(self, batch_size):
    midpoints = losses.quantile_midpoints(self._num_quantiles)  # [K]
    return tf.tile(midpoints[None], [batch_size, 1])  # [B, K]

  def sample_taus(self, noise, batch_size):
    return noise.uniforms([batch_size, self._num_taus])  # [B, N]

  def target_taus(self, noise, batch_size):
    drawn = noise.uniforms([batch_size, self._num_target_taus])  # [B, N']
    return tf.concat([self.policy_taus(batch_size), drawn], axis=-1)

  def read_target(self, outputs):
    sizes = [self._num_quantiles, self._num_target_taus]
    for_values, drawn = tf.split(outputs, sizes, axis=-1)
    return self.values(for_values), drawn


def _expected(bootstrap: Bootstrap) -> tf.Tensor:
  """Returns Σ_a w_a (outputs_a + b_a), `[B, ...]`."""
  outputs, weights, bonuses = bootstrap
  if len(outputs.shape) == 3:
    weights, bonuses = weights[:, :, None], bonuses[:, :, None]
  return tf.reduce_sum(weights * (outputs + bonuses), axis=1)
