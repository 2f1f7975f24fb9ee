"""Config of D4PG."""

import dataclasses
from typing import ClassVar

from repertory.agents.interface import config_checks, config_fields
from repertory.agents.replay import replay_config
from repertory.components.config import choices, settings


@dataclasses.dataclass(frozen=True)
class D4PGConfig(replay_config.ReplayConfig):
  """Settings of D4PG, with the sources of their defaults.

  "The paper" is arXiv:1804.08617. The defaults suit small environments with
  vector observations.
  """

  xla_pays_after: ClassVar[int] = 500

  hidden_sizes: tuple[int, ...] = settings.field(
    (256, 256),
    'Hidden layer sizes of the policy and of the critic, with layer '
    'normalization of the first one; Acme has (256, 256, 256) and (512, 512, '
    '256).',
  )
  image_torso: str = config_fields.image_torso('policy and critic')
  num_atoms: int = settings.field(
    51, "Atoms of the critic's distribution: C51, arXiv:1707.06887, section 5."
  )
  vmin: float = settings.field(
    -150.0,
    "Smallest atom of the critic, the least value it can represent: Acme's, "
    'for rewards in [−1, 1]. Values beyond are clipped.',
  )
  vmax: float = settings.field(
    150.0, 'Largest atom of the critic, the greatest value it can represent.'
  )
  n_step: int = settings.field(
    5, 'n of n-step transitions: the paper, section 4.'
  )
  discount: float = settings.field(
    0.99, 'Discount factor γ: the paper, appendix A.'
  )
  batch_size: int = settings.field(
    256, 'Items per gradient step: the paper, section 4.'
  )
  learning_rate: float = settings.field(
    3e-4,
    'Learning rate of Adam for policy and critic; for small networks larger '
    "than the paper's 1e-4.",
  )
  adam_epsilon: float = config_fields.adam_epsilon()
  max_gradient_norm: float | None = settings.field(
    40.0,
    'Maximum global norm of gradients, separately for policy and critic: '
    "Acme's.",
  )
  max_action_gradient_norm: float | None = settings.field(
    None,
    'Maximum norm of ∂q/∂a of an item; None for no clipping, as in the paper. '
    'Acme has 1.',
  )
  target_update_period: int = settings.field(
    100, "Learner steps between target network updates: Acme's."
  )
  sigma: float = settings.field(
    0.3,
    'Standard deviation of exploration noise, for actions scaled to [−1, 1]: '
    'the paper, section 4.',
  )
  prioritized: bool = settings.field(
    False,
    'Use prioritized replay (arXiv:1511.05952); the paper finds little '
    'benefit.',
  )
  max_replay_size: int = settings.field(
    1_000_000, 'Capacity of the replay table, in items: the paper, section 4.'
  )
  min_replay_size: int = settings.field(
    1_000, 'Items in the table before learning starts.'
  )
  samples_per_insert: float = settings.field(
    64.0,
    'Replay ratio, average samples per item: with batches of 256, one learner '
    'step per 4 environment steps. Acme has one per 8.',
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check(
      self, 'hidden_sizes', len(self.hidden_sizes) >= 1, 'at least one number'
    )
    config_checks.check_one_of(self, 'image_torso', choices.IMAGE_TORSOS)
    config_checks.check_support(self)
    config_checks.check_at_least(self, 1, 'n_step', 'target_update_period')
    config_checks.check_at_least(self, 0, 'sigma')
    config_checks.check_positive(
      self, 'adam_epsilon', 'max_gradient_norm', 'max_action_gradient_norm'
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
