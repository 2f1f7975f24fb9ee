"""Config of IQL."""

import dataclasses

from repertory.agents.interface import config_checks, config_fields
from repertory.agents.replay import replay_config
from repertory.components.config import choices, settings


@dataclasses.dataclass(frozen=True)
class IQLConfig(replay_config.ReplayConfig):
  """Settings of IQL, with the sources of their defaults.

  "The paper" is arXiv:2110.06169, "the authors" the code that they published
  with it.
  """

  hidden_sizes: tuple[int, ...] = settings.field(
    (256, 256),
    'Hidden layer sizes of policy, value and each critic: the paper, appendix '
    'B.',
  )
  image_torso: str = config_fields.image_torso('policy, value and critics')
  num_critics: int = settings.field(
    2, 'Number of critics, whose minimum is used: the paper, appendix B.'
  )
  expectile: float = settings.field(
    0.7,
    "τ, expectile of the value: ½ is the mean over the data set's actions, "
    'and 1 the maximum. The paper, appendix B, for locomotion.',
  )
  advantage_scale: float = settings.field(
    3.0,
    'β, inverse temperature of the advantage weights; 0 for behavior cloning. '
    'The paper, appendix B, for locomotion.',
  )
  max_weight: float = settings.field(
    100.0, "Maximum of the advantage weights: the authors'."
  )
  n_step: int = settings.field(1, 'n of n-step transitions: the paper.')
  discount: float = settings.field(0.99, "Discount factor γ: the authors'.")
  batch_size: int = settings.field(
    256, 'Items per gradient step: the paper, appendix B.'
  )
  learning_rate: float = settings.field(
    3e-4,
    'Learning rate of Adam for policy, value and critics: the paper, appendix '
    'B.',
  )
  policy_anneal_learner_steps: int | None = settings.field(
    None,
    "Learner steps over which the policy's learning rate decays to 0 by a "
    "cosine schedule: all steps, in the authors' offline runs. None for a "
    'constant one, as in their online fine-tuning.',
  )
  adam_epsilon: float = config_fields.adam_epsilon()
  max_gradient_norm: float | None = settings.field(
    None,
    'Maximum global norm of gradients, separately for policy, value and '
    'critics; None for no clipping, as in the paper.',
  )
  target_update_rate: float = settings.field(
    0.005,
    'τ, rate of the moving average of the target critics, per learner step: '
    'the paper, appendix B.',
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
  # The paper, appendix B, for data sets that require stitching.
  'antmaze': {'expectile': 0.9, 'advantage_scale': 10.0},
  # The paper, appendix B, without its dropout.
  'adroit': {'advantage_scale': 0.5},
}
