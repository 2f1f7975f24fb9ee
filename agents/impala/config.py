"""Config of IMPALA."""

import dataclasses
from typing import ClassVar

from repertory.agents.interface import agent_config, config_checks
from repertory.agents.unrolls import unroll_config
from repertory.components.config import settings


@dataclasses.dataclass(frozen=True)
class IMPALAConfig(unroll_config.UnrollConfig, agent_config.NetworkConfig):
  """Settings of IMPALA, with the sources of their defaults.

  The defaults suit small environments with vector observations; "the paper" is
  arXiv:1802.01561.
  """

  xla_pays_after: ClassVar[int] = 3_000
  queued_batches: ClassVar[int] = 2
  schedulable: ClassVar[tuple[str, ...]] = (
    'baseline_cost',
    'entropy_cost',
    'lambda_',
    'max_c',
    'max_pg_rho',
    'max_rho',
  )

  hidden_sizes: tuple[int, ...] = agent_config.default(
    (128, 128), ', before its core'
  )
  core: str = agent_config.default('none', "; the paper, figure 3, has 'lstm'")
  previous_action_and_reward: bool = agent_config.default(
    False, ", as the paper's recurrent network does"
  )
  unroll_length: int = agent_config.default(
    10, '; the paper has 20 for Atari, for fewer and larger batches'
  )
  across_episodes: bool = settings.field(
    True,
    'Continue unrolls across episode boundaries; otherwise the last one of an '
    'episode is padded.',
  )
  batch_size: int = agent_config.default(8, '; the paper has 32')
  discount: float = agent_config.default(0.99, ': the paper, appendix D')
  learning_rate: float = agent_config.default(
    1e-3, "; for small networks larger than the paper's"
  )
  anneal_learner_steps: config_checks.PositiveInt | None = settings.field(
    None,
    'Learner steps over which the learning rate decays linearly to 0; None '
    'for a constant one. The paper, appendix D, decays it over the run on '
    'Atari.',
  )
  amsgrad: bool = settings.field(
    True,
    'Use AMSGrad (arXiv:1904.09237), which divides by the largest mean square '
    "of a gradient so far. Without it, Adam's last mean square vanishes after "
    'a task is solved, and steps on noise grow: CartPole was lost again, see '
    '"Stability".',
  )
  max_gradient_norm: float | None = agent_config.default(
    40.0,
    ': the paper, appendix D, for a loss summed over steps. For a mean, as '
    'here, it only limits outliers',
  )
  baseline_cost: config_checks.NonNegativeFloat = settings.field(
    0.5, 'Weight of the value loss: the paper, appendix D.'
  )
  entropy_cost: config_checks.NonNegativeFloat = settings.field(
    0.01, 'Weight of the entropy bonus: the paper, appendix D, for Atari.'
  )
  max_abs_reward: float | None = agent_config.default(
    None, '. The paper has 1 for Atari'
  )
  max_rho: config_checks.NonNegativeFloat = settings.field(
    1.0,
    "ρ̄, clipping threshold of importance ratios in V-trace's TD errors: the "
    'paper, section 4.1.',
  )
  max_pg_rho: config_checks.NonNegativeFloat = settings.field(
    1.0,
    'ρ̄_pg, clipping threshold of importance ratios in the policy gradient: '
    'the paper, section 4.2.',
  )
  max_c: config_checks.NonNegativeFloat = settings.field(
    1.0,
    "c̄, clipping threshold of importance ratios of V-trace's traces: the "
    'paper, section 4.1.',
  )
  lambda_: config_checks.Fraction = settings.field(
    1.0, 'λ of V-trace: the paper, remark 2.'
  )
  max_queue_size: int | None = settings.field(
    None,
    'Capacity of the queue, in unrolls; None for two batches and one unroll '
    'of each environment.',
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check(
      self,
      'max_rho',
      self.max_rho >= self.max_c,
      f'at least max_c = {self.max_c}',
    )


PRESETS = {
  # The paper, appendix D, with learning rate and entropy cost of Acme's
  # example, for Adam instead of RMSProp.
  'atari': {
    'amsgrad': False,
    'hidden_sizes': (512,),
    'unroll_length': 20,
    'batch_size': 32,
    'max_abs_reward': 1.0,
    'learning_rate': 2e-4,
    'entropy_cost': 5e-3,
    'jit_compile': False,
  },
  # Our settings for 1,500,000 steps with Adam: see docs/results.md.
  'minatar': {
    'amsgrad': False,
    'hidden_sizes': (128,),
    'image_torso': 'residual',
    'unroll_length': 20,
    'learning_rate': 4e-4,
    'anneal_learner_steps': 9_375,
    'max_gradient_norm': 1.0,
    'jit_compile': False,
  },
}
