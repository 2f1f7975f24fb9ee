"""Settings of MPO."""

import dataclasses
from typing import ClassVar

from repertory.agents import config_checks, replay_config
from repertory.components import choices, settings

_DISTRIBUTIONS = ('none', 'categorical')


@dataclasses.dataclass(frozen=True)
class MPOConfig(replay_config.ReplayConfig):
  """Settings of MPO, each with where its default comes from.

  "Acme" is the agent MPO of dm-acme. The defaults suit small environments with
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
  distribution: str = settings.field(
    'none',
    "What the critic tells of returns: their mean ('none') or, as DMPO, their "
    "distribution over fixed atoms ('categorical').",
  )
  num_atoms: int = settings.field(
    51,
    'Atoms of a categorical critic: C51, arXiv:1707.06887, section 5.',
  )
  vmin: float = settings.field(
    -150.0,
    "Least value that a categorical critic can tell: Acme's, for rewards in "
    '[−1, 1]. Values beyond are cut off.',
  )
  vmax: float = settings.field(
    150.0, 'Largest value that a categorical critic can tell.'
  )
  num_samples: int = settings.field(
    20,
    "N, actions drawn in each state, if they are continuous: Acme's. Discrete "
    'ones are all summed over.',
  )
  n_step: int = settings.field(3, 'Steps a transition spans; Acme has 5.')
  discount: float = settings.field(0.99, "γ: Acme's.")
  batch_size: int = settings.field(256, "Items a learner step samples: Acme's.")
  learning_rate: float = settings.field(
    5e-4,
    'Step size of Adam for policy and critic; for small networks larger than '
    "Acme's 1e-4.",
  )
  dual_learning_rate: float = settings.field(
    1e-2, "Step size of Adam for temperatures and prices: Acme's."
  )
  adam_epsilon: float = settings.field(
    1e-8, "Added to Adam's denominator: its authors', arXiv:1412.6980."
  )
  max_gradient_norm: float | None = settings.field(
    None,
    'Global norm at which gradients are clipped, those of policy and of critic '
    'each by itself; None for no limit. Acme has 40, which holds a critic of '
    'large values back.',
  )
  epsilon: float = settings.field(
    0.1,
    "ε, how far the E-step goes, in nats: Acme's.",
  )
  epsilon_mean: float = settings.field(
    2.5e-3,
    'ε_μ, how far means move between copies to the target policy, for each '
    "number of a continuous action: Acme's.",
  )
  epsilon_stddev: float = settings.field(
    1e-4,
    'ε_σ, the same of deviations, large enough for short runs; Acme has 1e-6.',
  )
  epsilon_policy: float = settings.field(
    1e-2,
    'ε_π, the same of the probabilities of discrete actions; Acme has 2.5e-3.',
  )
  initial_temperature: float = settings.field(
    1.0,
    'η in the first learner step, of either E-step; Acme has 10.',
  )
  initial_alpha_mean: float = settings.field(
    1.0, 'α_μ in the first learner step; Acme has 10.'
  )
  initial_alpha_stddev: float = settings.field(
    10.0, 'α_σ in the first learner step; Acme has 1,000.'
  )
  initial_alpha_policy: float = settings.field(
    1.0, 'α_π in the first learner step, for discrete actions; Acme has 3.'
  )
  epsilon_penalty: float | None = settings.field(
    1e-3,
    'ε of another E-step, for which continuous actions beyond their bounds are '
    "bad (MO-MPO, arXiv:2005.07513): Acme's; None for none.",
  )
  initial_stddev: float = settings.field(
    0.7,
    'σ of an untrained policy, of actions scaled to [−1, 1]: that of the '
    "networks in Acme's examples.",
  )
  target_update_period: int = settings.field(
    25, 'Learner steps between copies to the target networks; Acme has 100.'
  )
  prioritized: bool = settings.field(
    False, 'Sample by priority (arXiv:1511.05952) or uniformly, as Acme does.'
  )
  max_replay_size: int = settings.field(
    1_000_000, "Items the table holds: Acme's."
  )
  min_replay_size: int = settings.field(
    1_000, "Items before learning starts: Acme's."
  )
  samples_per_insert: float = settings.field(
    128.0,
    'Mean draws per item: with batches of 256, a learner step every other '
    'step. Acme takes one every 8.',
  )

  @property
  def num_critic_outputs(self) -> int:
    """Numbers by which the critic rates an action."""
    return self.num_atoms if self.distribution == 'categorical' else 1

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check(
      self, 'hidden_sizes', len(self.hidden_sizes) >= 1, 'at least one number'
    )
    config_checks.check_one_of(self, 'image_torso', choices.IMAGE_TORSOS)
    config_checks.check_one_of(self, 'distribution', _DISTRIBUTIONS)
    config_checks.check_support(self)
    config_checks.check_at_least(
      self, 1, 'num_samples', 'n_step', 'target_update_period'
    )
    config_checks.check_positive(
      self, 'dual_learning_rate', 'adam_epsilon', 'max_gradient_norm',
      'epsilon', 'epsilon_mean', 'epsilon_stddev', 'epsilon_policy',
      'epsilon_penalty', 'initial_temperature', 'initial_alpha_mean',
      'initial_alpha_stddev', 'initial_alpha_policy', 'initial_stddev',
    )  # fmt: skip


PRESETS = {
  # Those of Acme's DMPO for the control suite, whose rewards are in [0, 1],
  # with the layers of its policy (its critic has 512, 512 and 256).
  'dm_control': {
    'hidden_sizes': (256, 256, 256),
    'distribution': 'categorical',
    'n_step': 5,
    'learning_rate': 1e-4,
    'max_gradient_norm': 40.0,
    'epsilon_stddev': 1e-6,
    'epsilon_policy': 2.5e-3,
    'initial_temperature': 10.0,
    'initial_alpha_mean': 10.0,
    'initial_alpha_stddev': 1_000.0,
    'initial_alpha_policy': 3.0,
    'target_update_period': 100,
    'samples_per_insert': 32.0,
  },
  # Between the defaults and Acme's: for runs of more than 100,000 steps.
  'steady': {
    'learning_rate': 3e-4,
    'target_update_period': 100,
    'epsilon_stddev': 1e-5,
  },
}
