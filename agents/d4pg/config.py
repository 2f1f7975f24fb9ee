"""Settings of D4PG."""

import dataclasses
from typing import ClassVar

from repertory.agents import config_checks, replay_config
from repertory.components import choices, settings


@dataclasses.dataclass(frozen=True)
class D4PGConfig(replay_config.ReplayConfig):
  """Settings of D4PG, each with where its default comes from.

  "The paper" is arXiv:1804.08617. The defaults suit small environments with
  vector observations.
  """

  xla_pays_after: ClassVar[int] = 500

  hidden_sizes: tuple[int, ...] = settings.field(
    (256, 256),
    'Layers of the policy and of the critic, the first one normalized; Acme '
    'has (256, 256, 256) and (512, 512, 256).',
  )
  image_torso: str = settings.field(
    'auto',
    "Convolutions for image leaves: 'nature', 'residual', 'data_efficient', "
    "'minatar' or, by the size of each, 'auto', see "
    'docs/environments.md; policy and critic have their own.',
  )
  num_atoms: int = settings.field(
    51, "Atoms of the critic's distribution: C51, arXiv:1707.06887, section 5."
  )
  vmin: float = settings.field(
    -150.0,
    "Least value that the critic can tell, the smallest atom: Acme's, for "
    'rewards in [−1, 1]. Values beyond are cut off.',
  )
  vmax: float = settings.field(
    150.0, 'Largest value that the critic can tell, the largest atom.'
  )
  n_step: int = settings.field(
    5, 'Steps a transition spans: the paper, section 4.'
  )
  discount: float = settings.field(0.99, 'γ: the paper, appendix A.')
  batch_size: int = settings.field(
    256, 'Items a learner step samples: the paper, section 4.'
  )
  learning_rate: float = settings.field(
    3e-4,
    'Step size of Adam for policy and critic; for small networks larger than '
    "the paper's 1e-4.",
  )
  adam_epsilon: float = settings.field(
    1e-8, "Added to Adam's denominator: its authors', arXiv:1412.6980."
  )
  max_gradient_norm: float | None = settings.field(
    40.0,
    'Global norm at which gradients are clipped, those of policy and of critic '
    "each by itself: Acme's.",
  )
  max_action_gradient_norm: float | None = settings.field(
    None,
    'Norm at which ∂q/∂a of an item is clipped; None for no limit, as in the '
    'paper. Acme has 1.',
  )
  target_update_period: int = settings.field(
    100, "Learner steps between copies to the target networks: Acme's."
  )
  sigma: float = settings.field(
    0.3,
    'Deviation of the noise that is added to actions scaled to [−1, 1]: the '
    'paper, section 4.',
  )
  prioritized: bool = settings.field(
    False,
    'Sample by priority (arXiv:1511.05952) or uniformly; the paper finds '
    'little use in priorities.',
  )
  max_replay_size: int = settings.field(
    1_000_000, 'Items the table holds: the paper, section 4.'
  )
  min_replay_size: int = settings.field(1_000, 'Items before learning starts.')
  samples_per_insert: float = settings.field(
    64.0,
    'Mean draws per item: with batches of 256, a learner step every 4 steps. '
    'Acme takes one every 8.',
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
  # Those of Acme's D4PG for the control suite, whose rewards are in [0, 1],
  # with the layers of its policy (its critic has 512, 512 and 256).
  'dm_control': {
    'hidden_sizes': (256, 256, 256),
    'learning_rate': 1e-4,
    'max_action_gradient_norm': 1.0,
    'samples_per_insert': 32.0,
  },
}
