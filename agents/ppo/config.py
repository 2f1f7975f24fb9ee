"""Config of PPO."""

import dataclasses
from typing import ClassVar

from repertory.agents.interface import config_checks, config_fields
from repertory.agents.unrolls import unroll_config
from repertory.components.config import choices, settings

# Default minimum batch size, in unrolls: the number of actors in the paper, for
# Atari.
_MIN_BATCH_SIZE = 8


@dataclasses.dataclass(frozen=True)
class PPOConfig(unroll_config.UnrollConfig):
  """Settings of PPO, with the sources of their defaults.

  The defaults suit small environments with vector observations; "the paper" is
  arXiv:1707.06347, "Andrychowicz" arXiv:2006.05990, and "Engstrom"
  arXiv:2005.12729.
  """

  xla_pays_after: ClassVar[int] = 200

  shared_sizes: tuple[int, ...] = settings.field(
    (),
    'Hidden layer sizes shared by policy and value, before the recurrent core.',
  )
  hidden_sizes: tuple[int, ...] = settings.field(
    (64, 64),
    'Hidden layer sizes of policy and value each, after the recurrent core: '
    'the paper, section 6.1; separate networks: Andrychowicz, section 3.2.',
  )
  image_torso: str = config_fields.image_torso()
  normalize_observations: bool = settings.field(
    False,
    'Normalize observations, except images, to mean 0 and standard deviation '
    '1, as recommended for MuJoCo: Andrychowicz, section 3.3.',
  )
  scale_rewards: bool = settings.field(
    False,
    'Divide rewards by the running standard deviation of discounted returns, '
    "as the paper's code does for MuJoCo: Engstrom, section 3.",
  )
  max_abs_reward: float | None = settings.field(
    None,
    'Rewards are clipped to ± this before learning, after scale_rewards; None '
    'for no clipping.',
  )
  unroll_length: int = settings.field(
    128, 'T, steps per unroll: the paper, table 5.'
  )
  batch_size: int | None = settings.field(
    None,
    'Unrolls per learner step; None for the same number of each environment, '
    'at least 8 in total.',
  )
  num_epochs: int = settings.field(
    4, 'Epochs over each batch; the paper has 3 for Atari and 10 for MuJoCo.'
  )
  num_minibatches: int = settings.field(
    4,
    'Minibatches (gradient steps) per epoch; the paper has 4 for Atari and 32 '
    'for MuJoCo.',
  )
  discount: float = settings.field(
    0.99, 'Discount factor γ: the paper, tables 3 and 5.'
  )
  lambda_: float = settings.field(0.95, 'λ of GAE: the paper, tables 3 and 5.')
  clip_epsilon: float = settings.field(
    0.2,
    'ε, clipping range of the probability ratios: the paper, table 1.',
  )
  value_clip_epsilon: float | None = settings.field(
    None,
    'Clipping range of the value loss, per learner step; None for no '
    'clipping: Andrychowicz, section 3.3.',
  )
  normalize_advantages: bool = settings.field(
    True,
    'Normalize advantages to mean 0 and standard deviation 1 in each '
    'minibatch.',
  )
  learning_rate: float = settings.field(
    1e-3, 'Learning rate of Adam; the paper has 3e-4 for MuJoCo.'
  )
  max_gradient_norm: float = settings.field(
    0.5, "Maximum global norm of gradients: that of the paper's code."
  )
  anneal_learner_steps: int | None = settings.field(
    None,
    'Learner steps over which learning rate and clip_epsilon decay linearly '
    'to 0; None for constant ones. The paper decays them over the run on '
    'Atari.',
  )
  target_kl: float | None = settings.field(
    None,
    'Approximate KL divergence from the behavior policy at which a learner '
    'step stops early, per minibatch; None for no early stopping.',
  )
  baseline_cost: float = settings.field(
    0.5, "Weight of the value loss: that of the paper's code."
  )
  entropy_cost: float = settings.field(
    0.01, 'Weight of the entropy bonus: the paper, table 5, for Atari.'
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_sizes(self, 'shared_sizes')
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check_one_of(self, 'image_torso', choices.IMAGE_TORSOS)
    config_checks.check_at_least(
      self, 1, 'num_epochs', 'num_minibatches', 'anneal_learner_steps'
    )
    config_checks.check_at_least(self, 0, 'baseline_cost', 'entropy_cost')
    config_checks.check_positive(
      self, 'clip_epsilon', 'value_clip_epsilon', 'target_kl',
      'max_gradient_norm',
    )  # fmt: skip
    config_checks.check_fraction(self, 'lambda_')

  def batch_size_for(self, num_environments: int) -> int:
    return self.divided_batch_size(
      num_environments,
      self.num_minibatches,
      min_size=_MIN_BATCH_SIZE,
      # The normalized advantage of a single step would be 0.
      min_steps=2 if self.normalize_advantages else 1,
    )


PRESETS = {
  # The paper, table 5, for 10 million steps of 8 environments.
  'atari': {
    'shared_sizes': (512,),
    'hidden_sizes': (),
    'num_epochs': 3,
    'learning_rate': 2.5e-4,
    'clip_epsilon': 0.1,
    'anneal_learner_steps': 9_765,
    'max_abs_reward': 1.0,
    'jit_compile': False,
  },
  # The paper, table 3, with the normalization of its code; 8 unrolls of 256
  # steps replace one of 2048.
  'mujoco': {
    'normalize_observations': True,
    'scale_rewards': True,
    'max_abs_reward': 10.0,
    'unroll_length': 256,
    'num_epochs': 10,
    'num_minibatches': 32,
    'learning_rate': 3e-4,
    'entropy_cost': 0.0,
  },
}
