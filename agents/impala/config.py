"""Settings of IMPALA."""

import dataclasses
from typing import ClassVar

from repertory.agents import config_checks, unroll_config
from repertory.components import choices, settings


@dataclasses.dataclass(frozen=True)
class IMPALAConfig(unroll_config.UnrollConfig):
  """Settings of IMPALA, each with where its default comes from.

  The defaults suit small environments with vector observations; "the paper" is
  arXiv:1802.01561.
  """

  xla_pays_after: ClassVar[int] = 3_000

  hidden_sizes: tuple[int, ...] = settings.field(
    (128, 128), 'Layers of the network before its core.'
  )
  image_torso: str = settings.field(
    'auto',
    "Convolutions for image leaves: 'nature', 'residual', 'data_efficient', "
    "'minatar' or, by the size of each, 'auto', see docs/environments.md.",
  )
  core: str = settings.field(
    'none', "Memory: 'none', 'lstm' (the paper, figure 3) or 'gru'."
  )
  previous_action_and_reward: bool = settings.field(
    False,
    'Whether the network sees the action and the reward before each '
    "observation, as the paper's recurrent network does.",
  )
  unroll_length: int = settings.field(
    10,
    'T, steps of an unroll; the paper has 20 for Atari, which gives fewer and '
    'larger batches.',
  )
  across_episodes: bool = settings.field(
    True,
    'Whether unrolls go on over the end of episodes; else the last one of an '
    'episode is padded.',
  )
  batch_size: int = settings.field(
    8, 'Unrolls a learner step takes; the paper has 32.'
  )
  discount: float = settings.field(0.99, 'γ: the paper, appendix D.')
  learning_rate: float = settings.field(
    1e-3, "Step size of Adam; for small networks larger than the paper's."
  )
  anneal_learner_steps: int | None = settings.field(
    None,
    'Learner steps in which the learning rate falls to 0, linearly; None for '
    'never. The paper, appendix D, lets it fall over a run on Atari.',
  )
  amsgrad: bool = settings.field(
    True,
    'Whether Adam divides by the largest mean square of a gradient so far '
    '(AMSGrad, arXiv:1904.09237) and not by the last. That one fades once a '
    'task is solved, and steps on noise grow: CartPole was lost again, see '
    '"Stability".',
  )
  max_gradient_norm: float = settings.field(
    40.0,
    "Global norm at which gradients are clipped: the paper's, appendix D, of a "
    'sum over steps. Of a mean, as here, it only catches extremes.',
  )
  baseline_cost: float = settings.field(
    0.5, 'Weight of the value loss: the paper, appendix D.'
  )
  entropy_cost: float = settings.field(
    0.01, 'Weight of the entropy: the paper, appendix D, for Atari.'
  )
  max_abs_reward: float | None = settings.field(
    None,
    'Rewards are clipped to ± this before learning; None leaves them as they '
    'are. The paper has 1 for Atari.',
  )
  max_rho: float = settings.field(
    1.0,
    "ρ̄, the bound of the ratios in V-trace's errors: the paper, section 4.1.",
  )
  max_pg_rho: float = settings.field(
    1.0,
    "ρ̄_pg, the bound of the ratios in the policy's gradient: the paper, 4.2.",
  )
  max_c: float = settings.field(
    1.0,
    'c̄, the bound of the ratios that carry errors back: the paper, section '
    '4.1.',
  )
  lambda_: float = settings.field(1.0, 'λ of V-trace: the paper, remark 2.')
  max_queue_size: int | None = settings.field(
    None,
    'Unrolls the queue holds; None for two batches and one of each '
    'environment.',
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check_one_of(self, 'image_torso', choices.IMAGE_TORSOS)
    config_checks.check_at_least(self, 1, 'anneal_learner_steps')
    config_checks.check_at_least(
      self, 0, 'baseline_cost', 'entropy_cost', 'max_rho', 'max_pg_rho', 'max_c'
    )
    config_checks.check_positive(self, 'max_gradient_norm')
    config_checks.check_fraction(self, 'lambda_')
    config_checks.check(
      self,
      'max_rho',
      self.max_rho >= self.max_c,
      f'at least max_c = {self.max_c}',
    )

  def batch_size_for(self, num_environments: int) -> int:
    del num_environments
    return self.batch_size

  def default_queue_size(self, num_environments: int) -> int:
    return 2 * self.batch_size + num_environments


PRESETS = {
  # The paper, appendix D, with the learning rate and entropy of Acme's example,
  # for Adam and not RMSProp.
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
  # Ours, for 1,500,000 steps, measured with Adam: see docs/results.md.
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
