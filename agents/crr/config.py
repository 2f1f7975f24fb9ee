"""Settings of CRR."""

import dataclasses

from repertory.agents import config_checks, replay_config
from repertory.components import choices, settings

# What becomes of an advantage, and what it is compared with.
_WEIGHTS = ('exp', 'binary')
_BASELINES = ('mean', 'max')


@dataclasses.dataclass(frozen=True)
class CRRConfig(replay_config.ReplayConfig):
  """Settings of CRR, each with where its default comes from.

  "The paper" is arXiv:2006.15134.
  """

  hidden_sizes: tuple[int, ...] = settings.field(
    (256, 256),
    'Layers of the policy and of the critic, whose first one is normalized as '
    "Acme's, for small environments; the paper has residual blocks of 1,024.",
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
    "Least return that the critic can tell, the smallest atom: Acme's, for "
    'rewards in [−1, 1]. Data with a lesser one are refused.',
  )
  vmax: float = settings.field(
    150.0,
    'Largest return that the critic can tell, the largest atom. Data with a '
    'larger one are refused.',
  )
  advantage_weights: str = settings.field(
    'exp',
    "How much an action counts when the policy is cloned: 'exp' for "
    "exp(A / β), 'binary' for 1 if its advantage A is positive, else 0. The "
    'paper, section 3, has both.',
  )
  advantage_baseline: str = settings.field(
    'mean',
    "What its value is compared with: the 'mean' of those of actions drawn "
    "from the policy, or the 'max' of them: the paper, section 3.",
  )
  num_action_samples: int = settings.field(
    4, "m, how many are drawn for that: Acme's."
  )
  advantage_temperature: float = settings.field(
    1.0, "β of 'exp', in units of reward: Acme's."
  )
  max_weight: float = settings.field(20.0, "Largest weight of 'exp': Acme's.")
  n_step: int = settings.field(
    1, 'Steps a transition spans: the paper, algorithm 1.'
  )
  discount: float = settings.field(0.99, "γ: Acme's.")
  batch_size: int = settings.field(256, "Items a learner step samples: Acme's.")
  learning_rate: float = settings.field(
    3e-4,
    'Step size of Adam for policy and critic; for small networks larger than '
    "Acme's 1e-4.",
  )
  adam_epsilon: float = settings.field(
    1e-8, "Added to Adam's denominator: its authors', arXiv:1412.6980."
  )
  max_gradient_norm: float | None = settings.field(
    40.0,
    'Global norm at which gradients are clipped, those of policy and of critic '
    "each by itself: Acme's; None for no limit.",
  )
  target_update_period: int = settings.field(
    100, "Learner steps between copies to the target networks: Acme's."
  )
  prioritized: bool = settings.field(
    False,
    'Sample by priority (arXiv:1511.05952) or uniformly, as the paper does.',
  )
  max_replay_size: int = settings.field(
    1_000_000, 'Items the table holds, where there are actors.'
  )
  min_replay_size: int = settings.field(
    1_000, 'Items before learning starts, where there are actors.'
  )
  samples_per_insert: float = settings.field(
    256.0,
    'Mean draws per item, where there are actors: with batches of 256, a '
    'learner step for every step.',
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check(
      self, 'hidden_sizes', len(self.hidden_sizes) >= 1, 'at least one number'
    )
    config_checks.check_support(self)
    config_checks.check_one_of(self, 'image_torso', choices.IMAGE_TORSOS)
    config_checks.check_one_of(self, 'advantage_weights', _WEIGHTS)
    config_checks.check_one_of(self, 'advantage_baseline', _BASELINES)
    config_checks.check_at_least(
      self, 1, 'num_action_samples', 'n_step', 'max_weight',
      'target_update_period',
    )  # fmt: skip
    config_checks.check_positive(
      self, 'adam_epsilon', 'max_gradient_norm', 'advantage_temperature'
    )


PRESETS = {
  # The paper, section 3: the other advantages.
  'binary': {'advantage_weights': 'binary'},
  'binary_max': {'advantage_weights': 'binary', 'advantage_baseline': 'max'},
}
