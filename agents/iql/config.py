"""Settings of IQL."""

import dataclasses

from repertory.agents import config_checks, replay_config
from repertory.components import choices, settings


@dataclasses.dataclass(frozen=True)
class IQLConfig(replay_config.ReplayConfig):
  """Settings of IQL, each with where its default comes from.

  "The paper" is arXiv:2110.06169, "its authors" the code that they published
  with it.
  """

  hidden_sizes: tuple[int, ...] = settings.field(
    (256, 256),
    'Layers of the policy, of the value and of each critic: the paper, '
    'appendix B.',
  )
  image_torso: str = settings.field(
    'auto',
    "Convolutions for image leaves: 'nature', 'residual', 'data_efficient', "
    "'minatar' or, by the size of each, 'auto', see "
    'docs/environments.md; policy, value and critics have their own.',
  )
  num_critics: int = settings.field(
    2, 'Critics, of whose values the least counts: the paper, appendix B.'
  )
  expectile: float = settings.field(
    0.7,
    'τ of the value: ½ is the mean over the actions of the data, and 1 the '
    'best of them. The paper, appendix B, for locomotion.',
  )
  advantage_scale: float = settings.field(
    3.0,
    'β, what a unit of advantage counts for when the policy is cloned: 0 '
    'clones all alike. The paper, appendix B, for locomotion.',
  )
  max_weight: float = settings.field(
    100.0, "Largest weight of an item in the policy's loss: its authors'."
  )
  n_step: int = settings.field(1, 'Steps a transition spans: the paper.')
  discount: float = settings.field(0.99, "γ: its authors'.")
  batch_size: int = settings.field(
    256, 'Items a learner step samples: the paper, appendix B.'
  )
  learning_rate: float = settings.field(
    3e-4,
    'Step size of Adam for policy, value and critics: the paper, appendix B.',
  )
  policy_anneal_learner_steps: int | None = settings.field(
    None,
    "Learner steps in which the policy's step size falls to 0, along a cosine: "
    "all that there are, for its authors' data; None for never, as when they "
    'go on where it acts.',
  )
  adam_epsilon: float = settings.field(
    1e-8, "Added to Adam's denominator: its authors', arXiv:1412.6980."
  )
  max_gradient_norm: float | None = settings.field(
    None,
    'Global norm at which gradients are clipped, those of policy, value and '
    'critics each by itself; None for no limit, as in the paper.',
  )
  target_update_rate: float = settings.field(
    0.005,
    'Part of the way that the target critics go in a learner step: the paper, '
    'appendix B.',
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
    config_checks.check_one_of(self, 'image_torso', choices.IMAGE_TORSOS)
    config_checks.check_at_least(
      self, 1, 'num_critics', 'n_step', 'policy_anneal_learner_steps'
    )
    config_checks.check(
      self, 'expectile', 0 < self.expectile < 1, 'between 0 and 1'
    )
    config_checks.check_at_least(self, 0, 'advantage_scale')
    config_checks.check_at_least(self, 1, 'max_weight')
    config_checks.check_positive(
      self, 'adam_epsilon', 'max_gradient_norm', 'target_update_rate'
    )
    config_checks.check_fraction(self, 'target_update_rate')


PRESETS = {
  # The paper, appendix B: where data are to be pieced together.
  'antmaze': {'expectile': 0.9, 'advantage_scale': 10.0},
  # The paper, appendix B, without its dropout.
  'adroit': {'advantage_scale': 0.5},
}
