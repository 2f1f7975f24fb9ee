"""Config of PPO."""

import dataclasses
from typing import ClassVar

from repertory.agents.interface import agent_config, config_checks
from repertory.agents.unrolls import unroll_config
from repertory.components.config import settings


@dataclasses.dataclass(frozen=True)
class PPOConfig(unroll_config.ActorCriticConfig):
  """Settings of PPO, with the sources of their defaults.

  The defaults suit small environments with vector observations; "the paper" is
  arXiv:1707.06347, "Andrychowicz" arXiv:2006.05990, and "Engstrom"
  arXiv:2005.12729.
  """

  xla_pays_after: ClassVar[int] = 200
  schedulable: ClassVar[tuple[str, ...]] = (
    'clip_epsilon',
    'entropy_cost',
    'target_kl',
    'value_clip_epsilon',
  )

  hidden_sizes: tuple[int, ...] = agent_config.default(
    (64, 64),
    ': the paper, section 6.1; separate networks: Andrychowicz, section 3.2',
  )
  normalize_observations: bool = agent_config.default(
    False, ', as recommended for MuJoCo: Andrychowicz, section 3.3'
  )
  normalize_rewards: bool = agent_config.default(
    False, ", as the paper's code does for MuJoCo: Engstrom, section 3"
  )
  unroll_length: int = agent_config.default(128, ': the paper, table 5')
  num_epochs: int = agent_config.default(
    4, '; the paper has 3 for Atari and 10 for MuJoCo'
  )
  num_minibatches: int = agent_config.default(
    4, '; the paper has 4 for Atari and 32 for MuJoCo'
  )
  discount: float = agent_config.default(0.99, ': the paper, tables 3 and 5')
  lambda_: float = agent_config.default(
    0.95, ' (GAE): the paper, tables 3 and 5'
  )
  clip_epsilon: config_checks.PositiveFloat = settings.field(
    0.2,
    'ε, clipping range of the probability ratios: the paper, table 1.',
  )
  value_clip_epsilon: config_checks.PositiveFloat | None = settings.field(
    None,
    'Clipping range of the value loss, per learner step; None for no '
    'clipping: Andrychowicz, section 3.3.',
  )
  learning_rate: float = agent_config.default(
    1e-3, '; the paper has 3e-4 for MuJoCo'
  )
  anneal_learner_steps: int | None = settings.field(
    None,
    'Learner steps over which learning rate and clip_epsilon decay linearly '
    'to 0; None for constant ones. The paper decays them over the run on '
    'Atari.',
  )
  target_kl: config_checks.PositiveFloat | None = settings.field(
    None,
    'Approximate KL divergence from the behavior policy at which a learner '
    'step stops early, per minibatch; None for no early stopping.',
  )
  entropy_cost: config_checks.NonNegativeFloat = settings.field(
    0.01, 'Weight of the entropy bonus: the paper, table 5, for Atari.'
  )

  @property
  def min_minibatch_steps(self) -> int:
    # The normalized advantage of a single step would be 0.
    return 2 if self.normalize_advantages else 1


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
    'normalize_rewards': True,
    'max_abs_reward': 10.0,
    'unroll_length': 256,
    'num_epochs': 10,
    'num_minibatches': 32,
    'learning_rate': 3e-4,
    'entropy_cost': 0.0,
  },
}
