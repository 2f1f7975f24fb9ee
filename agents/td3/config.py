"""Config of TD3."""

import dataclasses
from typing import ClassVar

from repertory.agents.interface import config_checks, config_fields
from repertory.agents.replay import replay_config
from repertory.components.config import choices, settings


@dataclasses.dataclass(frozen=True)
class TD3Config(replay_config.ReplayConfig):
  """Settings of TD3, with the sources of their defaults.

  "The paper" is arXiv:1802.09477, "the authors" the code that they published
  with it.
  """

  xla_pays_after: ClassVar[int] = 500

  hidden_sizes: tuple[int, ...] = settings.field(
    (256, 256),
    "Hidden layer sizes of the policy and of each critic: the authors'; the "
    'paper, appendix C, has (400, 300).',
  )
  image_torso: str = config_fields.image_torso('policy and critics')
  num_critics: int = settings.field(
    2,
    'Number of critics, whose minimum is used: the paper, section 4.2; DDPG '
    'has 1.',
  )
  policy_update_period: int = settings.field(
    2,
    'Learner steps between updates of policy and target networks: the paper, '
    'section 5.2; DDPG has 1.',
  )
  target_sigma: float = settings.field(
    0.2,
    'Standard deviation of target policy smoothing noise, for actions scaled '
    'to [−1, 1]: the paper, section 5.3; DDPG has 0.',
  )
  target_noise_limit: float = settings.field(
    0.5,
    'Clipping range of target policy smoothing noise: the paper, section 5.3.',
  )
  behavior_cloning_alpha: float | None = settings.field(
    None,
    'α of TD3+BC, arXiv:2106.06860, which has 2.5: smaller values keep the '
    "policy closer to the data set's actions. None to disable behavior "
    'cloning.',
  )
  n_step: int = settings.field(1, 'n of n-step transitions: the paper.')
  discount: float = settings.field(
    0.99, 'Discount factor γ: the paper, appendix C.'
  )
  batch_size: int = settings.field(
    256, "Items per gradient step: the authors'; the paper has 100."
  )
  learning_rate: float = settings.field(
    1e-3,
    'Learning rate of Adam for policy and critics: the paper, appendix C; its '
    "authors' code has 3e-4, with which Pendulum takes longer.",
  )
  adam_epsilon: float = config_fields.adam_epsilon()
  max_gradient_norm: float | None = settings.field(
    None,
    'Maximum global norm of gradients, separately for policy and critic; None '
    'for no clipping, as in the paper.',
  )
  target_update_rate: float = settings.field(
    0.005,
    'τ, rate of the moving average of the target networks, per policy step: '
    'the paper, section 6.1.',
  )
  sigma: float = settings.field(
    0.1,
    'Standard deviation of exploration noise, for actions scaled to [−1, 1]: '
    'the paper, section 6.1.',
  )
  num_random_steps: int = settings.field(
    1_000,
    'Initial steps with uniformly random actions, over all environments: the '
    'paper, section 6.1, for the easier environments; the authors have 25,000.',
  )
  prioritized: bool = settings.field(
    False,
    'Use prioritized replay (arXiv:1511.05952); the paper samples uniformly.',
  )
  max_replay_size: int = settings.field(
    1_000_000, 'Capacity of the replay table, in items: the paper keeps all.'
  )
  min_replay_size: int = settings.field(
    1_000,
    'Items in the table before learning starts: the number of random steps.',
  )
  samples_per_insert: float = settings.field(
    256.0,
    'Replay ratio, average samples per item: with batches of 256, one learner '
    'step per environment step, as in the paper, section 6.1.',
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check_one_of(self, 'image_torso', choices.IMAGE_TORSOS)
    config_checks.check_at_least(
      self, 1, 'num_critics', 'policy_update_period', 'n_step'
    )
    config_checks.check_at_least(
      self, 0, 'sigma', 'target_sigma', 'target_noise_limit', 'num_random_steps'
    )
    config_checks.check_positive(
      self, 'adam_epsilon', 'max_gradient_norm', 'target_update_rate',
      'behavior_cloning_alpha',
    )  # fmt: skip
    config_checks.check_fraction(self, 'target_update_rate')


PRESETS = {
  # Without the additions of TD3: arXiv:1509.02971, with TD3's other settings.
  'ddpg': {'num_critics': 1, 'policy_update_period': 1, 'target_sigma': 0.0},
  # Offline: arXiv:2106.06860, table 3, without observation normalization.
  'td3_bc': {'behavior_cloning_alpha': 2.5, 'learning_rate': 3e-4},
}
