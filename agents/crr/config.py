"""Config of CRR."""

import dataclasses

from repertory.agents.interface import config_checks, config_fields
from repertory.agents.replay import replay_config
from repertory.components.config import choices, settings

# Advantage weights and baselines.
_WEIGHTS = ('exp', 'binary')
_BASELINES = ('mean', 'max')


@dataclasses.dataclass(frozen=True)
class CRRConfig(replay_config.ReplayConfig):
  """Settings of CRR, with the sources of their defaults.

  "The paper" is arXiv:2006.15134.
  """

  hidden_sizes: tuple[int, ...] = settings.field(
    (256, 256),
    'Hidden layer sizes of policy and critic, with layer normalization of the '
    "critic's first one as in Acme; for small environments. The paper has "
    'residual blocks of 1,024.',
  )
  image_torso: str = config_fields.image_torso('policy and critic')
  num_atoms: int = settings.field(
    51, "Atoms of the critic's distribution: C51, arXiv:1707.06887, section 5."
  )
  vmin: float = settings.field(
    -150.0,
    "Smallest atom of the critic, the least return it can represent: Acme's, "
    'for rewards in [−1, 1]. Data sets with lower returns are rejected.',
  )
  vmax: float = settings.field(
    150.0,
    'Largest atom of the critic, the greatest return it can represent. Data '
    'sets with higher returns are rejected.',
  )
  advantage_weights: str = settings.field(
    'exp',
    "Weights of cloned actions: 'exp' for exp(A / β), 'binary' for 1 if the "
    'advantage A is positive, else 0: the paper, section 3.',
  )
  advantage_baseline: str = settings.field(
    'mean',
    "Baseline of the advantage: 'mean' or 'max' of the values of actions "
    'sampled from the policy: the paper, section 3.',
  )
  num_action_samples: int = settings.field(
    4, "m, number of actions sampled for the baseline: Acme's."
  )
  advantage_temperature: float = settings.field(
    1.0, "Temperature β of 'exp' weights, in units of reward: Acme's."
  )
  max_weight: float = settings.field(20.0, "Maximum of 'exp' weights: Acme's.")
  n_step: int = settings.field(
    1, 'n of n-step transitions: the paper, algorithm 1.'
  )
  discount: float = settings.field(0.99, "Discount factor γ: Acme's.")
  batch_size: int = settings.field(256, "Items per gradient step: Acme's.")
  learning_rate: float = settings.field(
    3e-4,
    'Learning rate of Adam for policy and critic; for small networks larger '
    "than Acme's 1e-4.",
  )
  adam_epsilon: float = config_fields.adam_epsilon()
  max_gradient_norm: float | None = settings.field(
    40.0,
    'Maximum global norm of gradients, separately for policy and critic: '
    "Acme's; None for no clipping.",
  )
  target_update_period: int = settings.field(
    100, "Learner steps between target network updates: Acme's."
  )
  prioritized: bool = settings.field(
    False,
    'Use prioritized replay (arXiv:1511.05952); the paper samples uniformly.',
  )
  max_replay_size: int = settings.field(
    1_000_000, 'Capacity of the replay table, in items, in runs with actors.'
  )
  min_replay_size: int = settings.field(
    1_000, 'Items in the table before learning starts, in runs with actors.'
  )
  samples_per_insert: float = settings.field(
    256.0,
    'Replay ratio, average samples per item, in runs with actors: with '
    'batches of 256, one learner step per environment step.',
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
  # The paper, section 3: other weights and baselines.
  'binary': {'advantage_weights': 'binary'},
  'binary_max': {'advantage_weights': 'binary', 'advantage_baseline': 'max'},
}
