"""Losses and targets as pure functions of tensors."""

from repertory.components.losses.advantage_weights import (
  binary_weights,
  expectile_losses,
  exponential_weights,
)
from repertory.components.losses.advantages import (
  Advantages,
  generalized_advantages,
)
from repertory.components.losses.adversarial_imitation import (
  discriminator_loss,
  gradient_penalty,
  imitation_rewards,
)
from repertory.components.losses.behavior_cloning import (
  cross_entropy_cloning_loss,
  squared_cloning_loss,
  td3_bc_policy_loss,
  weighted_cloning_loss,
)
from repertory.components.losses.clipped_double_q import (
  clipped_double_q_targets,
)
from repertory.components.losses.conservative_q import conservative_q_loss
from repertory.components.losses.deterministic_policy_gradient import (
  deterministic_policy_loss,
)
from repertory.components.losses.distributional import (
  categorical_divergence,
  categorical_mean,
  categorical_mixture_targets,
  categorical_td_targets,
)
from repertory.components.losses.divergences import (
  categorical_kl,
  gaussian_entropy,
  gaussian_kl,
  gaussian_log_prob,
)
from repertory.components.losses.importance import importance_ratios
from repertory.components.losses.large_margin import large_margin_loss
from repertory.components.losses.masking import masked_mean
from repertory.components.losses.maximum_a_posteriori import (
  EStep,
  categorical_mixture,
  mpo_e_step,
  mpo_kl_loss,
  mpo_policy_loss,
)
from repertory.components.losses.munchausen import (
  munchausen_bonus,
  scaled_log_policy,
)
from repertory.components.losses.policy_gradient import (
  entropy_loss,
  policy_gradient_loss,
  value_loss,
)
from repertory.components.losses.proximal_policy import (
  approximate_kl,
  clipped_surrogate_loss,
  clipped_value_loss,
  explained_variance,
  standardize,
)
from repertory.components.losses.q_learning import huber, importance_weights
from repertory.components.losses.quantile_regression import (
  quantile_huber,
  quantile_midpoints,
)
from repertory.components.losses.random_network_distillation import (
  prediction_errors,
)
from repertory.components.losses.reward_clipping import clip_rewards
from repertory.components.losses.sequence_q_learning import (
  sequence_double_q_errors,
  sequence_priorities,
)
from repertory.components.losses.soft_actor_critic import (
  soft_policy_loss,
  soft_q_targets,
  temperature_loss,
  truncated_quantiles,
)
from repertory.components.losses.top_half import (
  vmpo_e_step,
  vmpo_policy_loss,
)
from repertory.components.losses.value_transforms import (
  inverse_rescale,
  rescale,
)
from repertory.components.losses.vtrace import VTrace, vtrace

__all__ = [
  'Advantages',
  'EStep',
  'VTrace',
  'approximate_kl',
  'binary_weights',
  'categorical_divergence',
  'categorical_kl',
  'categorical_mean',
  'categorical_mixture',
  'categorical_mixture_targets',
  'categorical_td_targets',
  'clip_rewards',
  'clipped_double_q_targets',
  'clipped_surrogate_loss',
  'clipped_value_loss',
  'conservative_q_loss',
  'cross_entropy_cloning_loss',
  'deterministic_policy_loss',
  'discriminator_loss',
  'entropy_loss',
  'expectile_losses',
  'explained_variance',
  'exponential_weights',
  'gaussian_entropy',
  'gaussian_kl',
  'gaussian_log_prob',
  'generalized_advantages',
  'gradient_penalty',
  'huber',
  'imitation_rewards',
  'importance_ratios',
  'importance_weights',
  'inverse_rescale',
  'large_margin_loss',
  'masked_mean',
  'mpo_e_step',
  'mpo_kl_loss',
  'mpo_policy_loss',
  'munchausen_bonus',
  'policy_gradient_loss',
  'prediction_errors',
  'quantile_huber',
  'quantile_midpoints',
  'rescale',
  'scaled_log_policy',
  'sequence_double_q_errors',
  'sequence_priorities',
  'soft_policy_loss',
  'soft_q_targets',
  'squared_cloning_loss',
  'standardize',
  'td3_bc_policy_loss',
  'temperature_loss',
  'truncated_quantiles',
  'value_loss',
  'vmpo_e_step',
  'vmpo_policy_loss',
  'vtrace',
  'weighted_cloning_loss',
]
