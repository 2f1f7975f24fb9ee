"""Config of D4PG."""

import dataclasses
from typing import ClassVar

from repertory.agents.interface import agent_config, config_checks
from repertory.agents.replay import replay_config
from repertory.components.config import settings


@dataclasses.dataclass(frozen=True)
class D4PGConfig(
  replay_config.TransitionReplayConfig, agent_config.CategoricalConfig
):
  """Settings of D4PG, with the sources of their defaults.

  "The paper" is arXiv:1804.08617. The defaults suit small environments with
  vector observations.
  """

  xla_pays_after: ClassVar[int] = 500
  schedulable: ClassVar[tuple[str, ...]] = ('max_action_gradient_norm',)

  hidden_sizes: config_checks.NonEmptySizes = agent_config.default(
    (256, 256),
    ', with layer normalization of the first layer; Acme has (256, 256, 256) '
    'and (512, 512, 256)',
  )
  n_step: int = agent_config.default(5, ': the paper, section 4')
  discount: float = agent_config.default(0.99, ': the paper, appendix A')
  batch_size: int = agent_config.default(256, ': the paper, section 4')
  learning_rate: float = agent_config.default(
    3e-4, "; for small networks larger than the paper's 1e-4"
  )
  max_gradient_norm: float | None = agent_config.default(40.0, ": Acme's")
  max_action_gradient_norm: config_checks.PositiveFloat | None = settings.field(
    None,
    'Maximum norm of ∂q/∂a of an item; None for no clipping, as in the paper. '
    'Acme has 1.',
  )
  target_update_period: config_checks.PositiveInt = settings.field(
    100, "Learner steps between target network updates: Acme's."
  )
  sigma: config_checks.NonNegativeFloat = settings.field(
    0.3,
    'Standard deviation of exploration noise, for actions scaled to [−1, 1]: '
    'the paper, section 4.',
  )
  prioritized: bool = agent_config.default(
    False, '; the paper finds little benefit'
  )
  max_replay_size: int = agent_config.default(
    1_000_000, ': the paper, section 4'
  )
  samples_per_insert: float = agent_config.default(
    64.0, '. 64 is one per 4 environment steps; Acme has one per 8'
  )


PRESETS = {
  # Acme's D4PG for the control suite, whose rewards are in [0, 1],
  # with the layers of its policy (its critic has 512, 512 and 256).
  'dm_control': {
    'hidden_sizes': (256, 256, 256),
    'learning_rate': 1e-4,
    'max_action_gradient_norm': 1.0,
    'samples_per_insert': 32.0,
  },
}
