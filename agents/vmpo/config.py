"""Config of V-MPO."""

import dataclasses
from typing import ClassVar

from repertory.agents.interface import config_checks, config_fields
from repertory.agents.unrolls import unroll_config
from repertory.components.config import choices, settings

# Default minimum batch size, in unrolls.
_MIN_BATCH_SIZE = 8


@dataclasses.dataclass(frozen=True)
class VMPOConfig(unroll_config.UnrollConfig):
  """Settings of V-MPO, with the sources of their defaults.

  "The paper" is arXiv:1909.12238. The defaults suit small environments with
  vector observations.
  """

  xla_pays_after: ClassVar[int] = 200

  shared_sizes: tuple[int, ...] = settings.field(
    (),
    'Hidden layer sizes shared by policy and value, before the recurrent core.',
  )
  hidden_sizes: tuple[int, ...] = settings.field(
    (64, 64),
    'Hidden layer sizes of policy and value each, after the recurrent core: '
    "PPO's.",
  )
  image_torso: str = config_fields.image_torso()
  scale_rewards: bool = settings.field(
    True,
    'Divide rewards by the running standard deviation of discounted returns, '
    'so that learning is independent of their scale; the paper normalizes '
    'values instead (PopArt).',
  )
  max_abs_reward: float | None = settings.field(
    None,
    'Rewards are clipped to ± this before learning, after scale_rewards; None '
    'for no clipping.',
  )
  unroll_length: int = settings.field(64, 'T, steps per unroll.')
  batch_size: int | None = settings.field(
    None,
    'Unrolls per learner step; None for the same number of each environment, '
    'at least 8 in total.',
  )
  num_epochs: int = settings.field(
    4, "Epochs over each batch: PPO's; the paper has 1, and many more batches."
  )
  num_minibatches: int = settings.field(
    4, "Minibatches (gradient steps) per epoch: PPO's; the paper has 1."
  )
  target_update_period: int = settings.field(
    1,
    'T_target, learner steps between copies to the target network, which '
    'acts; the paper has more, of one gradient step each.',
  )
  discount: float = settings.field(0.99, 'Discount factor γ: the paper.')
  lambda_: float = settings.field(
    0.95,
    "λ of GAE: that of PPO; 1 for the paper's returns, up to the end of the "
    'unroll.',
  )
  normalize_advantages: bool = settings.field(
    True,
    'Normalize advantages to mean 0 and standard deviation 1 in each '
    'minibatch; the paper normalizes values instead (PopArt).',
  )
  epsilon: float = settings.field(0.1, 'ε_η, KL bound of the E-step, in nats.')
  epsilon_policy: float = settings.field(
    1e-2,
    'ε_α, KL bound of discrete policies between copies to the target network, '
    'in nats.',
  )
  epsilon_mean: float = settings.field(
    1e-2,
    'ε_αμ, KL bound of the means of continuous actions, over all dimensions.',
  )
  epsilon_stddev: float = settings.field(
    1e-3, 'ε_αΣ, KL bound of the standard deviations of continuous actions.'
  )
  initial_temperature: float = settings.field(
    1.0, 'Initial temperature η: the paper.'
  )
  initial_alpha_policy: float = settings.field(
    1.0, 'Initial KL multiplier α, for discrete actions.'
  )
  initial_alpha_mean: float = settings.field(1.0, 'Initial KL multiplier α_μ.')
  initial_alpha_stddev: float = settings.field(
    1.0, 'Initial KL multiplier α_Σ.'
  )
  learning_rate: float = settings.field(1e-3, 'Learning rate of Adam.')
  dual_learning_rate: float = settings.field(
    1e-2, 'Learning rate of Adam for η and α.'
  )
  max_gradient_norm: float = settings.field(
    0.5, "Maximum global norm of gradients: PPO's."
  )
  anneal_learner_steps: int | None = settings.field(
    None,
    'Learner steps over which the learning rate decays linearly to 0; None '
    'for a constant one, as in the paper.',
  )
  baseline_cost: float = settings.field(0.5, 'Weight of the value loss.')

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_sizes(self, 'shared_sizes')
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check_one_of(self, 'image_torso', choices.IMAGE_TORSOS)
    config_checks.check_at_least(
      self, 1, 'num_epochs', 'num_minibatches', 'target_update_period',
      'anneal_learner_steps',
    )  # fmt: skip
    config_checks.check_at_least(self, 0, 'baseline_cost')
    config_checks.check_positive(
      self, 'epsilon', 'epsilon_policy', 'epsilon_mean', 'epsilon_stddev',
      'initial_temperature', 'initial_alpha_policy', 'initial_alpha_mean',
      'initial_alpha_stddev', 'dual_learning_rate', 'max_gradient_norm',
    )  # fmt: skip
    config_checks.check_fraction(self, 'lambda_')

  def batch_size_for(self, num_environments: int) -> int:
    return self.divided_batch_size(
      num_environments,
      self.num_minibatches,
      min_size=_MIN_BATCH_SIZE,
      min_steps=2,  # The top half of a single step is the step itself.
    )


PRESETS = {}
