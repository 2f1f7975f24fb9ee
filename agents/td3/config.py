"""Settings of TD3."""

import dataclasses
from typing import ClassVar

from repertory.agents import config_checks, replay_config
from repertory.components import choices, settings


@dataclasses.dataclass(frozen=True)
class TD3Config(replay_config.ReplayConfig):
  """Settings of TD3, each with where its default comes from.

  "The paper" is arXiv:1802.09477, "its authors" the code that they published
  with it.
  """

  xla_pays_after: ClassVar[int] = 500

  hidden_sizes: tuple[int, ...] = settings.field(
    (256, 256),
    "Layers of the policy and of each critic: its authors'; the paper, "
    'appendix C, has (400, 300).',
  )
  image_torso: str = settings.field(
    'auto',
    "Convolutions for image leaves: 'nature', 'residual', 'data_efficient', "
    "'minatar' or, by the size of each, 'auto', see "
    'docs/environments.md; policy and critics have their own.',
  )
  num_critics: int = settings.field(
    2,
    'Critics, of whose values the least counts: the paper, section 4.2; DDPG '
    'has 1.',
  )
  policy_update_period: int = settings.field(
    2,
    'Learner steps from one of the policy and of the targets to the next: the '
    'paper, section 5.2; DDPG has 1.',
  )
  target_sigma: float = settings.field(
    0.2,
    'Deviation of the noise of the actions that targets are of, scaled to '
    '[−1, 1]: the paper, section 5.3; DDPG has 0.',
  )
  target_noise_limit: float = settings.field(
    0.5, 'What that noise is limited to, either way: the paper, section 5.3.'
  )
  behavior_cloning_alpha: float | None = settings.field(
    None,
    'α of TD3+BC, arXiv:2106.06860, which has 2.5: the policy keeps near the '
    'actions it learns from, the nearer the smaller α. None leaves it free.',
  )
  n_step: int = settings.field(1, 'Steps a transition spans: the paper.')
  discount: float = settings.field(0.99, 'γ: the paper, appendix C.')
  batch_size: int = settings.field(
    256, "Items a learner step samples: its authors'; the paper has 100."
  )
  learning_rate: float = settings.field(
    1e-3,
    'Step size of Adam for policy and critics: the paper, appendix C; its '
    "authors' code has 3e-4, with which Pendulum takes longer.",
  )
  adam_epsilon: float = settings.field(
    1e-8, "Added to Adam's denominator: its authors', arXiv:1412.6980."
  )
  max_gradient_norm: float | None = settings.field(
    None,
    'Global norm at which gradients are clipped, those of policy and of '
    'critics each by itself; None for no limit, as in the paper.',
  )
  target_update_rate: float = settings.field(
    0.005,
    'τ, part of the way that the targets go when the policy learns: the paper, '
    'section 6.1.',
  )
  sigma: float = settings.field(
    0.1,
    'Deviation of the noise that is added to actions scaled to [−1, 1]: the '
    'paper, section 6.1.',
  )
  num_random_steps: int = settings.field(
    1_000,
    'First steps, over all environments, with uniform actions: the paper, '
    'section 6.1, for the easier environments; its authors have 25,000.',
  )
  prioritized: bool = settings.field(
    False,
    'Sample by priority (arXiv:1511.05952) or uniformly, as the paper does.',
  )
  max_replay_size: int = settings.field(
    1_000_000, 'Items the table holds: the paper keeps all.'
  )
  min_replay_size: int = settings.field(
    1_000, 'Items before learning starts: as many as are random.'
  )
  samples_per_insert: float = settings.field(
    256.0,
    'Mean draws per item: with batches of 256, a learner step for every step, '
    'as in the paper, section 6.1.',
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
  # What TD3 added is left out: arXiv:1509.02971, with TD3's other settings.
  'ddpg': {'num_critics': 1, 'policy_update_period': 1, 'target_sigma': 0.0},
  # For data: arXiv:2106.06860, table 3, without its normalized observations.
  'td3_bc': {'behavior_cloning_alpha': 2.5, 'learning_rate': 3e-4},
}
