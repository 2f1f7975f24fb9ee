"""Settings of V-MPO."""

import dataclasses
from typing import ClassVar

from repertory.agents import config_checks, unroll_config
from repertory.components import choices, settings

# Unrolls of a batch if nothing is said.
_MIN_BATCH_SIZE = 8


@dataclasses.dataclass(frozen=True)
class VMPOConfig(unroll_config.UnrollConfig):
  """Settings of V-MPO, each with where its default comes from.

  "The paper" is arXiv:1909.12238. The defaults suit small environments with
  vector observations.
  """

  xla_pays_after: ClassVar[int] = 200

  shared_sizes: tuple[int, ...] = settings.field(
    (), 'Layers that policy and value share, before the memory if there is one.'
  )
  hidden_sizes: tuple[int, ...] = settings.field(
    (64, 64),
    "Layers of the policy and as many of the value, behind the memory: PPO's.",
  )
  image_torso: str = settings.field(
    'auto',
    "Convolutions for image leaves: 'nature', 'residual', 'data_efficient', "
    "'minatar' or, by the size of each, 'auto', see docs/environments.md.",
  )
  scale_rewards: bool = settings.field(
    True,
    'Whether rewards are divided by the deviation of the discounted returns so '
    'far, so that values are learned as fast whatever their unit; the paper '
    'normalizes values instead (PopArt).',
  )
  max_abs_reward: float | None = settings.field(
    None,
    'Rewards are clipped to ± this before learning, behind scale_rewards; None '
    'leaves them as they are.',
  )
  unroll_length: int = settings.field(64, 'T, steps of an unroll.')
  batch_size: int | None = settings.field(
    None,
    'Unrolls a learner step takes; None for the same number of each '
    'environment, together 8 or more.',
  )
  num_epochs: int = settings.field(
    4, "Passes over a batch: PPO's; the paper has 1, and many more batches."
  )
  num_minibatches: int = settings.field(
    4, "Gradient steps of a pass: PPO's; the paper has 1."
  )
  target_update_period: int = settings.field(
    1,
    'T_target, learner steps between copies to the network that acts; the '
    'paper has more, of one gradient step each.',
  )
  discount: float = settings.field(0.99, 'γ: the paper.')
  lambda_: float = settings.field(
    0.95,
    'λ of the advantages: that of PPO; 1 for the returns of the paper, which '
    'end with the unroll.',
  )
  normalize_advantages: bool = settings.field(
    True,
    'Whether advantages are shifted and scaled to mean 0 and deviation 1, in '
    'each minibatch; the paper normalizes values instead (PopArt).',
  )
  epsilon: float = settings.field(0.1, 'ε_η, how far the E-step goes, in nats.')
  epsilon_policy: float = settings.field(
    1e-2,
    'ε_α, how far the probabilities of discrete actions move between copies to '
    'the network that acts, in nats.',
  )
  epsilon_mean: float = settings.field(
    1e-2, 'ε_αμ, the same of the means of continuous actions, all together.'
  )
  epsilon_stddev: float = settings.field(
    1e-3, 'ε_αΣ, the same of their deviations.'
  )
  initial_temperature: float = settings.field(
    1.0, 'η in the first gradient step: the paper.'
  )
  initial_alpha_policy: float = settings.field(
    1.0, 'α in the first gradient step, for discrete actions.'
  )
  initial_alpha_mean: float = settings.field(
    1.0, 'α_μ in the first gradient step.'
  )
  initial_alpha_stddev: float = settings.field(
    1.0, 'α_Σ in the first gradient step.'
  )
  learning_rate: float = settings.field(1e-3, 'Step size of Adam.')
  dual_learning_rate: float = settings.field(
    1e-2, 'Step size of Adam for η and α.'
  )
  max_gradient_norm: float = settings.field(
    0.5, "Global norm at which gradients are clipped: PPO's."
  )
  anneal_learner_steps: int | None = settings.field(
    None,
    'Learner steps in which the learning rate falls to 0, linearly; None for '
    'never, as in the paper.',
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
      min_steps=2,  # Of a single step, the better half would be itself.
    )


PRESETS = {}
