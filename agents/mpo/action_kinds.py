"""Continuous and discrete policies of MPO."""

import math
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from repertory.agents.mpo import config as mpo_config
from repertory.components import learners, losses, types
from repertory.components.actions import (
  action_masks,
  action_scaling,
  discrete_actions,
)

# Maps observations, and continuous actions in [−1, 1] if any, to M outputs of
# each action.
Critic = Callable[..., tf.Tensor]


class Candidates(NamedTuple):
  """Candidate actions of the E-step.

  Attributes:
    action: Sampled actions `[B, N, D]`; `()` for all discrete actions.
    log_prior: Log-probabilities before the E-step, `[B, N]`.
  """

  action: types.Nest
  log_prior: tf.Tensor


class Change(NamedTuple):
  """M-step policy that differs from the target policy in one part.

  Attributes:
    log_prob: Log-probabilities of the candidates, `[B, N]`.
    kl: KL divergences from the target policy, `[B, D]`; each of the D
      dimensions has its own multiplier.
  """

  log_prob: tf.Tensor
  kl: tf.Tensor


class Gaussians:
  """Diagonal Gaussian policies, clipped to the bounds when they act.

  KL bounds are separate for means and standard deviations
  (https://arxiv.org/abs/1812.02256), and for each dimension of an action
  (https://arxiv.org/abs/2006.00979).

  Attributes:
    objectives: KL bounds of the E-steps in nats, by the prefix of their
      metrics.
    parts: Parts with a KL bound in the M-step, the names of `changes`.
    num_prices: D, number of multipliers of each bound.
  """

  parts = ('mean', 'stddev')

  def __init__(
    self, scaling: action_scaling.ActionScaling, config: mpo_config.MPOConfig
  ):
    self._scaling = scaling
    self._num_samples = config.num_samples
    self.objectives = {'': config.epsilon}
    if config.epsilon_penalty is not None:
      # Penalty for actions out of bounds, https://arxiv.org/abs/2005.07513.
      self.objectives['penalty_'] = config.epsilon_penalty
    self.num_prices = scaling.size

  def propose(
    self, parameters: tf.Tensor, noise: learners.UpdateNoise
  ) -> Candidates:
    """Returns candidate actions of policies `[B, P]`."""
    mean, scale = tf.split(parameters[:, None], 2, axis=-1)  # [B, 1, D]
    shape = [tf.shape(parameters)[0], self._num_samples, self._scaling.size]
    normals = tf.ensure_shape(noise.normals(shape), [None, *shape[1:]])
    log_prior = tf.fill(shape[:2], -math.log(self._num_samples))
    return Candidates(mean + scale * normals, log_prior)

  def rate(
    self, critic: Critic, observation: types.Nest, candidates: Candidates
  ) -> tf.Tensor:
    """Returns outputs of a critic for candidates, `[B, N, M]`."""
    action = tf.clip_by_value(candidates.action, -1.0, 1.0)
    return critic(observation, action)

  def rate_taken(
    self, critic: Critic, observation: types.Nest, action: types.Nest
  ) -> tf.Tensor:
    """Returns outputs of a critic for actions of the environment, `[B, M]`."""
    scaled = self._scaling.from_action(action)  # [B, D]
    return critic(observation, scaled)

  def changes(
    self, parameters: tf.Tensor, target: tf.Tensor, candidates: Candidates
  ) -> dict[str, Change]:
    """Compares policies `[B, P]` with target policies `[B, P]`, by part."""
    mean, scale = tf.split(parameters, 2, axis=-1)  # [B, D]
    old_mean, old_scale = tf.split(target, 2, axis=-1)

    def change(mean, scale):
      return Change(
        losses.gaussian_log_prob(
          candidates.action, mean[:, None], scale[:, None]
        ),
        losses.gaussian_kl(old_mean, old_scale, mean, scale),
      )

    return {'mean': change(mean, old_scale), 'stddev': change(old_mean, scale)}

  def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
    """Returns the entropies `[B]` of policies `[B, P]`."""
    return losses.gaussian_entropy(tf.split(parameters, 2, axis=-1)[1])

  def ratings(
    self, candidates: Candidates, q: tf.Tensor
  ) -> dict[str, tf.Tensor]:
    """Returns values of candidates for each of `objectives`, `[B, N]`."""
    action = candidates.action
    outside = action - tf.clip_by_value(action, -1.0, 1.0)  # [B, N, D]
    return {'': q, 'penalty_': -tf.norm(outside, axis=-1)}


class Categoricals:
  """Categorical policies with all actions as candidates, see `Gaussians`."""

  parts = ('policy',)
  num_prices = 1

  def __init__(
    self,
    actions: discrete_actions.DiscreteActions,
    config: mpo_config.MPOConfig,
  ):
    self._actions = actions
    self.objectives = {'': config.epsilon}

  def propose(self, parameters, noise) -> Candidates:
    del noise
    return Candidates((), tf.nn.log_softmax(parameters))

  def rate(self, critic, observation, candidates) -> tf.Tensor:
    del candidates
    return critic(observation)

  def rate_taken(self, critic, observation, action) -> tf.Tensor:
    number = self._actions.from_action(action)  # [B]
    return tf.gather(critic(observation), number, batch_dims=1)

  def changes(self, parameters, target, candidates) -> dict[str, Change]:
    del candidates
    kl = losses.categorical_kl(target, parameters)  # [B]
    return {'policy': Change(tf.nn.log_softmax(parameters), kl[:, None])}

  def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
    log_probs = tf.nn.log_softmax(parameters)  # [B, A]
    return -tf.reduce_sum(tf.exp(log_probs) * log_probs, axis=-1)

  def ratings(self, candidates, q) -> dict[str, tf.Tensor]:
    del candidates
    # Masked actions have no prior. Quotients by the temperature stay finite.
    allowed = action_masks.is_allowed(q)
    least = tf.reduce_min(tf.where(allowed, q, q.dtype.max), -1, keepdims=True)
    return {'': tf.where(allowed, q, least)}
