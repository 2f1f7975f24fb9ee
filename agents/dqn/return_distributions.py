"""Parameterizations of returns: expected values, C51, QR-DQN and IQN.

A network has outputs for each action, `[B, A, ...]`. A `ReturnDistribution`
defines their meaning: the action values and the loss, behind one interface.
"""

import abc
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from repertory.components import learners, losses
from repertory.components.actions import action_masks
from repertory.components.losses import shape_checks


class Bootstrap(NamedTuple):
  """The next state's contribution to a target.

  Attributes:
    outputs: Outputs of the target network for K actions, `[B, K, ...]`.
    weights: Their probabilities, `[B, K]`.
    bonuses: Added to the return of each action, `[B, K]`.
  """

  outputs: tf.Tensor
  weights: tf.Tensor
  bonuses: tf.Tensor


def greedy_bootstrap(outputs: tf.Tensor, q: tf.Tensor) -> Bootstrap:
  """Bootstraps from the greedy action of values q, `[B, A]`.

  With values of the online network this is double Q-learning,
  https://arxiv.org/abs/1509.06461; with those of the target network, whose
  outputs are `[B, A, ...]`, it is plain Q-learning.
  """
  actions = tf.argmax(q, axis=-1, output_type=tf.int32)  # [B]
  chosen = tf.gather(outputs, actions[:, None], batch_dims=1)  # [B, 1, ...]
  ones = tf.ones_like(q[:, :1])  # [B, 1]
  return Bootstrap(chosen, weights=ones, bonuses=tf.zeros_like(ones))


def soft_bootstrap(
  outputs: tf.Tensor, q: tf.Tensor, temperature: float
) -> Bootstrap:
  """Bootstraps from π = softmax(q / τ), with entropy bonuses −τ log π.

  See https://arxiv.org/abs/2007.14430, section 2. Outputs of the target network
  are `[B, A, ...]`, its values q `[B, A]`.
  """
  scaled = losses.scaled_log_policy(q, temperature)  # [B, A]
  return Bootstrap(outputs, tf.exp(scaled / temperature), bonuses=-scaled)


class ItemLosses(NamedTuple):
  """Losses of a batch.

  Attributes:
    losses: Losses to minimize, `[B]`.
    errors: TD errors of the expected returns, target minus value, `[B]`.
    priorities: New replay priorities of the items, `[B]`, at least 0.
    metrics: Further scalars by name.
  """

  losses: tf.Tensor
  errors: tf.Tensor
  priorities: tf.Tensor
  metrics: Mapping[str, tf.Tensor]


class ReturnDistribution(abc.ABC):
  """Interface of parameterized returns.

  Only implicit quantiles have the network take τ as input: for the others all τ
  here are None, and outputs are the same for every purpose.
  """

  @abc.abstractmethod
  def values(self, outputs: tf.Tensor) -> tf.Tensor:
    """Maps outputs `[B, A, ...]` to action values `[B, A]`.

    Raises:
      ValueError: If their rank does not fit.
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
    """Computes losses and priorities of the actions taken.

    The target is r + γ Σ_a w_a (Z(s', a) + b_a); no gradient flows into it.

    Args:
      outputs_tm1: Outputs for the first state and the action taken, `[B, ...]`.
      taus_tm1: The τ of these outputs, from `sample_taus`.
      r_t: Rewards, `[B]`.
      discount_t: Discounts of the bootstrap value, γ included, `[B]`.
      bootstrap: Contribution of the next state.

    Raises:
      ValueError: If a shape does not fit, such as for outputs of another
        parameterization.
    """

  def policy_taus(self, batch_size: int | tf.Tensor) -> tf.Tensor | None:
    """Returns the τ of the outputs passed to `values`."""
    del batch_size
    return None

  def sample_taus(
    self, noise: learners.UpdateNoise, batch_size: int | tf.Tensor
  ) -> tf.Tensor | None:
    """Samples the τ at which to train the online network."""
    del noise, batch_size
    return None

  def target_taus(
    self, noise: learners.UpdateNoise, batch_size: int | tf.Tensor
  ) -> tf.Tensor | None:
    """Returns the τ of the outputs passed to `read_target`."""
    del noise, batch_size
    return None

  def read_target(self, outputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns action values `[B, A]` and outputs for a target.

    Args:
      outputs: Outputs of the target network at `target_taus`, `[B, A, ...]`.
    """
    return self.values(outputs), outputs


class ExpectedReturn(ReturnDistribution):
  """Expected returns: one value per action, `[B, A]`.

  The loss is the Huber loss of the TD error, and the priority its absolute
  value.
  """

  def __init__(self, huber_threshold: float):
    self._threshold = huber_threshold

  def values(self, outputs: tf.Tensor) -> tf.Tensor:
    shape_checks.check_ranks(outputs=(outputs, 2))
    return outputs

  def compare(self, outputs_tm1, taus_tm1, r_t, discount_t, bootstrap):
    del taus_tm1
    shape_checks.check_ranks(outputs_tm1=(outputs_tm1, 1))
    targets = r_t + discount_t * _expected(bootstrap)  # [B]
    errors = tf.stop_gradient(targets) - outputs_tm1  # [B]
    return ItemLosses(
      losses.huber(errors, self._threshold), errors, tf.abs(errors), {}
    )


class CategoricalReturn(ReturnDistribution):
  """Categorical distribution (C51): logits of N fixed atoms, `[B, A, N]`.

  See https://arxiv.org/abs/1707.06887. The loss is the divergence from the
  target, and so is the priority: https://arxiv.org/abs/1710.02298.
  """

  def __init__(self, vmin: float, vmax: float, num_atoms: int):
    """Creates the support of `num_atoms` evenly spaced atoms."""
    # A NumPy array: an exported model cannot hold tensors made outside of it.
    self._atoms = np.linspace(vmin, vmax, num_atoms, dtype=np.float32)  # [N]

  def values(self, outputs: tf.Tensor) -> tf.Tensor:
    shape_checks.check_ranks(outputs=(outputs, 3))
    q = tf.reduce_sum(tf.nn.softmax(outputs) * self._atoms, axis=-1)  # [B, A]
    return action_masks.apply(q, action_masks.is_allowed(outputs[..., 0]))

  def compare(self, outputs_tm1, taus_tm1, r_t, discount_t, bootstrap):
    del taus_tm1
    targets = losses.categorical_mixture_targets(
      r_t, discount_t, *bootstrap, z=tf.constant(self._atoms)
    )  # [B, N]
    divergences = losses.categorical_divergence(targets, outputs_tm1)  # [B]
    mean = losses.categorical_mean(outputs_tm1, tf.constant(self._atoms))  # [B]
    errors = tf.reduce_sum(targets * self._atoms, axis=-1) - mean  # [B]
    # Probability at the ends of the support indicates that it is too narrow.
    at_ends = tf.reduce_mean(targets[:, 0] + targets[:, -1])
    # Negative only by rounding.
    priorities = tf.maximum(divergences, 0)
    return ItemLosses(
      divergences, errors, priorities, {'share_at_ends': at_ends}
    )


class QuantileReturn(ReturnDistribution):
  """Quantiles at τ̂_i = (i + ½) / N (QR-DQN), `[B, A, N]`.

  See https://arxiv.org/abs/1710.10044. The loss is the quantile Huber loss; the
  priority is the absolute error of the mean, which, unlike that loss, vanishes
  once the values are learned.
  """

  def __init__(self, num_quantiles: int, huber_threshold: float):
    self._num_quantiles = num_quantiles
    self._threshold = huber_threshold

  def values(self, outputs: tf.Tensor) -> tf.Tensor:
    shape_checks.check_ranks(outputs=(outputs, 3))
    return tf.reduce_mean(outputs, axis=-1)

  def compare(self, outputs_tm1, taus_tm1, r_t, discount_t, bootstrap):
    if taus_tm1 is None:
      taus_tm1 = losses.quantile_midpoints(self._num_quantiles)[None]  # [1, N]
    # Quantiles are averaged over actions, not mixed, as in M-IQN.
    targets = r_t[:, None] + discount_t[:, None] * _expected(bootstrap)
    errors = tf.reduce_mean(targets, axis=-1) - tf.reduce_mean(
      outputs_tm1, axis=-1
    )  # [B]
    of_items = losses.quantile_huber(
      outputs_tm1, taus_tm1, targets, self._threshold
    )  # [B]
    return ItemLosses(of_items, errors, tf.abs(errors), {})


class ImplicitQuantileReturn(QuantileReturn):
  """Implicit quantile networks (IQN): quantiles at given τ, `[B, A, N]`.

  See https://arxiv.org/abs/1806.06923. Values are deterministic.
  """

  def __init__(
    self,
    num_taus: int,
    num_target_taus: int,
    num_policy_taus: int,
    huber_threshold: float,
  ):
    """Takes N and N', numbers of τ sampled for first and next states.

    Values are means over K = `num_policy_taus` evenly spaced τ.
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
