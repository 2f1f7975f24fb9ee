"""Config of R2D2."""

import dataclasses
from typing import ClassVar, Literal

from repertory.agents.interface import agent_config, config_checks
from repertory.agents.replay import replay_config
from repertory.components.config import settings


@dataclasses.dataclass(frozen=True)
class R2D2Config(
  replay_config.ReplayConfig,
  agent_config.CoreConfig,
  agent_config.NetworkConfig,
  agent_config.EpsilonConfig,
):
  """Settings of R2D2, with the sources of their defaults.

  The defaults suit small environments with vector observations; "the paper" is
  https://openreview.net/forum?id=r1lyTjAqYX.
  """

  xla_pays_after: ClassVar[int] = 300
  schedulable: ClassVar[tuple[str, ...]] = (
    'max_priority_share',
    'rescale_epsilon',
  )

  hidden_sizes: tuple[int, ...] = agent_config.default(
    (64,), ', before its core'
  )
  core: Literal['lstm', 'gru', 'gtrxl'] = settings.field(
    'lstm', "Recurrent core: 'lstm' (the paper, section 2.3), 'gru' or 'gtrxl'."
  )
  core_size: int = agent_config.default(64, '; the paper has 512')
  previous_action_and_reward: bool = agent_config.default(
    True, ': the paper, appendix'
  )
  dueling: bool = settings.field(
    True,
    'Use the dueling architecture, with separate streams for state value and '
    'advantages: the paper, section 2.3.',
  )
  burn_in_length: config_checks.NonNegativeInt = settings.field(
    4,
    'Steps at the start of a sequence that only warm up the recurrent state; '
    'the paper has 40.',
  )
  unroll_length: config_checks.PositiveInt = settings.field(
    16, 'Steps of a sequence that contribute to the loss; the paper has 80.'
  )
  sequence_period: int | None = settings.field(
    None,
    'Steps between the starts of sequences; None for half of `unroll_length`, '
    'as in the paper.',
  )
  across_episodes: bool = settings.field(
    False,
    'Continue sequences across episode boundaries; otherwise the last one of '
    'an episode is padded. The paper: "never crossing episode boundaries".',
  )
  n_step: config_checks.PositiveInt = settings.field(
    5, 'n of n-step returns, at most `unroll_length`: the paper, section 2.3.'
  )
  discount: float = agent_config.default(0.997, ': the paper, section 2.3')
  rescale_epsilon: config_checks.PositiveFloat | None = settings.field(
    1e-3,
    'ε of the value rescaling; the paper, section 2.3. None for no rescaling.',
  )
  batch_size: int = settings.field(
    32, 'Sequences per gradient step; the paper has 64.'
  )
  learning_rate: float = agent_config.default(
    1e-3, "; for small networks larger than the paper's 1e-4"
  )
  adam_epsilon: float = settings.field(
    1e-3, 'ε of Adam, added to the denominator: the paper, appendix.'
  )
  max_gradient_norm: float | None = agent_config.default(
    80.0, ": SEED RL's R2D2"
  )
  target_update_period: config_checks.PositiveInt = settings.field(
    100,
    'Learner steps between target network updates; the paper has 2,500.',
  )
  prioritized: bool = agent_config.default(True)
  priority_exponent: float = settings.field(
    0.9, 'Priority exponent α: the paper, section 2.3.'
  )
  importance_exponent: float = settings.field(
    0.6, 'Importance weight exponent β: the paper, section 2.3.'
  )
  max_priority_share: config_checks.Fraction = settings.field(
    0.9,
    "η, weight of the maximum TD error in a sequence's priority, against the "
    'mean: the paper, section 2.3.',
  )
  epsilon_anneal_steps: int = agent_config.default(
    3_000, '; the paper has none'
  )
  max_replay_size: int = settings.field(
    20_000, 'Capacity of the replay table, in sequences; the paper has 100,000.'
  )
  min_replay_size: int = agent_config.default(100)
  samples_per_insert: float = agent_config.default(8.0)

  def __post_init__(self):
    super().__post_init__()
    config_checks.check(
      self,
      'n_step',
      self.n_step <= self.unroll_length,
      f'at most unroll_length = {self.unroll_length}',
    )
    config_checks.check(
      self,
      'sequence_period',
      1 <= self.period <= self.unroll_length,
      f'in [1, unroll_length] = [1, {self.unroll_length}]',
    )

  @property
  def period(self) -> int:
    """Steps between the starts of sequences."""
    if self.sequence_period is not None:
      return self.sequence_period
    return max(1, self.unroll_length // 2)

  @property
  def sequence_length(self) -> int:
    """Observations per sequence."""
    return self.burn_in_length + self.unroll_length + 1


PRESETS = {
  # The paper, section 2.3 and appendix. Each step is in two sequences, so its
  # replay ratio is 1.5, as in SEED RL (arXiv:1910.06591).
  'atari': {
    'hidden_sizes': (512,),
    'core_size': 512,
    'burn_in_length': 40,
    'unroll_length': 80,
    'batch_size': 64,
    'learning_rate': 1e-4,
    'target_update_period': 2_500,
    'epsilon_anneal_steps': 0,
    'max_replay_size': 100_000,
    'min_replay_size': 5_000,
    'samples_per_insert': 0.75,
    'jit_compile': False,
  },
}
