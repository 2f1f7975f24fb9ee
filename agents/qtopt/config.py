"""Settings of QT-Opt."""

import dataclasses
from typing import ClassVar

from repertory.agents import config_checks, replay_config
from repertory.components import choices, settings


@dataclasses.dataclass(frozen=True)
class QTOptConfig(replay_config.ReplayConfig):
  """Settings of QT-Opt, each with where its default comes from.

  "The paper" is arXiv:1806.10293. It learns from 580,000 grasps for months of
  robots; where its numbers are of that scale, ours are of small tasks.
  """

  xla_pays_after: ClassVar[int] = 500

  hidden_sizes: tuple[int, ...] = settings.field(
    (256, 256), 'Layers of the Q-function: those of TD3.'
  )
  image_torso: str = settings.field(
    'auto',
    "Convolutions for image leaves: 'nature', 'residual', 'data_efficient', "
    "'minatar' or, by the size of each, 'auto', see docs/environments.md.",
  )
  num_samples: int = settings.field(
    64, 'Actions that are tried in an iteration: N of the paper, section 4.3.'
  )
  num_elites: int = settings.field(
    6, 'The best of them, which the next are like: M of the paper.'
  )
  num_iterations: int = settings.field(2, 'Iterations: the paper.')
  initial_stddev: float = settings.field(
    1.0,
    'Deviation of the actions that are tried first, scaled to [−1, 1] and '
    'clipped there: ours, so that the bounds are among them.',
  )
  bounded: bool = settings.field(
    False,
    'Whether values are in [0, 1], by a sigmoid, and learned by the '
    'cross-entropy, as in the paper, whose reward is 1 for a success; else by '
    'squared errors.',
  )
  n_step: int = settings.field(1, 'Steps a transition spans: the paper.')
  discount: float = settings.field(
    0.99, 'γ: that of TD3; the paper, appendix D, has 0.9.'
  )
  batch_size: int = settings.field(
    256, 'Items a learner step samples: that of TD3; the paper has 32.'
  )
  learning_rate: float = settings.field(1e-3, 'Step size of Adam: that of TD3.')
  adam_epsilon: float = settings.field(
    1e-8, "Added to Adam's denominator: its authors', arXiv:1412.6980."
  )
  max_gradient_norm: float | None = settings.field(
    None, 'Global norm at which gradients are clipped; None for no limit.'
  )
  target_update_rate: float = settings.field(
    0.005,
    'τ, part of the way that the average Q-function goes in a learner step: '
    'that of TD3; the paper, section 4.2, has 0.0001.',
  )
  target_lag: int = settings.field(
    200,
    'Learner steps between copies of the average Q-function to the lagged one: '
    'ours; in the paper it is about 6,000 steps old.',
  )
  sigma: float = settings.field(
    0.1,
    'Deviation of the noise that is added to actions scaled to [−1, 1]: that '
    'of TD3.',
  )
  num_random_steps: int = settings.field(
    1_000, 'First steps, over all environments, with uniform actions: as TD3.'
  )
  prioritized: bool = settings.field(
    False,
    'Sample by priority (arXiv:1511.05952) or uniformly, as the paper does.',
  )
  max_replay_size: int = settings.field(
    1_000_000, 'Items the table holds: that of TD3.'
  )
  min_replay_size: int = settings.field(
    1_000, 'Items before learning starts: as many as are random.'
  )
  samples_per_insert: float = settings.field(
    256.0,
    'Mean draws per item: with batches of 256, a learner step for every step.',
  )

  train_buffer_size: int | None = settings.field(
    None,
    'Items with finished targets that are held, where Bellman updaters compute '
    'these, as in the paper; None if the learner does, in its update.',
  )
  samples_per_target: float = settings.field(
    1.0,
    'Mean draws of a finished target: ours; as many fewer are computed, for '
    'learner steps per step stay.',
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check_one_of(self, 'image_torso', choices.IMAGE_TORSOS)
    config_checks.check_at_least(
      self, 1, 'num_samples', 'num_elites', 'num_iterations', 'n_step',
      'target_lag', 'train_buffer_size',
    )  # fmt: skip
    config_checks.check(
      self,
      'num_elites',
      self.num_elites <= self.num_samples,
      f'at most num_samples = {self.num_samples}',
    )
    config_checks.check_at_least(self, 0, 'sigma', 'num_random_steps')
    config_checks.check_positive(
      self, 'adam_epsilon', 'max_gradient_norm', 'target_update_rate',
      'initial_stddev', 'samples_per_target',
    )  # fmt: skip
    config_checks.check_fraction(self, 'target_update_rate')
    has_updaters = self.train_buffer_size is not None
    config_checks.check(
      self,
      'prioritized',
      not (has_updaters and self.prioritized),
      'false with train_buffer_size, for who computes targets knows no errors',
    )
    config_checks.check(
      self,
      'samples_per_target',
      has_updaters or self.samples_per_target == 1,
      'left out without train_buffer_size',
    )


PRESETS = {
  # For rewards of 0 and, in the end, 1: the paper, section 4 and appendix D.
  'success': {'bounded': True, 'discount': 0.9},
}
