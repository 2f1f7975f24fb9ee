"""Losses and targets as pure functions of tensors.

All raise a ValueError for shapes other than the documented ones.
"""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.losses.advantages import *
  from repertory.components.losses.behavior_cloning import *
  from repertory.components.losses.distributional import *
  from repertory.components.losses.divergences import *
  from repertory.components.losses.maximum_a_posteriori import *
  from repertory.components.losses.policy_gradient import *
  from repertory.components.losses.q_learning import *
  from repertory.components.losses.reward_models import *
  from repertory.components.losses.sequence_q_learning import *
  from repertory.components.losses.shape_checks import *
  from repertory.components.losses.soft_actor_critic import *

__all__ = [
  'Advantages', 'EStep', 'VTrace', 'approximate_kl', 'binary_weights',
  'categorical_divergence', 'categorical_kl', 'categorical_mean',
  'categorical_mixture', 'categorical_mixture_targets',
  'categorical_td_targets', 'clip_rewards', 'clipped_double_q_targets',
  'clipped_surrogate_loss', 'clipped_value_loss', 'conservative_q_loss',
  'cross_entropy_cloning_loss', 'deterministic_policy_loss',
  'discriminator_loss', 'entropy_loss', 'expectile_losses',
  'explained_variance', 'exponential_weights', 'gaussian_entropy',
  'gaussian_kl', 'gaussian_log_prob', 'generalized_advantages',
  'gradient_penalty', 'huber', 'imitation_rewards', 'importance_ratios',
  'importance_weights', 'inverse_rescale', 'large_margin_loss', 'masked_mean',
  'mpo_e_step', 'mpo_kl_loss', 'mpo_policy_loss', 'munchausen_bonus',
  'policy_gradient_loss', 'prediction_errors', 'quantile_huber',
  'quantile_midpoints', 'rescale', 'scaled_log_policy',
  'sequence_double_q_errors', 'sequence_priorities', 'soft_policy_loss',
  'soft_q_targets', 'squared_cloning_loss', 'standardize',
  'td3_bc_policy_loss', 'temperature_loss', 'truncated_quantiles',
  'value_loss', 'vmpo_e_step', 'vmpo_policy_loss', 'vtrace',
  'weighted_cloning_loss',
]  # fmt: skip

__getattr__, __dir__ = lazy_imports.modules(__name__)
