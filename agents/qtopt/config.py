"""Config of QT-Opt."""

import dataclasses
from typing import ClassVar

from repertory.agents.interface import agent_config, config_checks
from repertory.agents.replay import replay_config
from repertory.components.config import settings


@dataclasses.dataclass(frozen=True)
class QTOptConfig(replay_config.TransitionReplayConfig):
  """Settings of QT-Opt, with the sources of their defaults.

  "The paper" is arXiv:1806.10293, which samples uniformly. It learns from
  580,000 grasps of months of robot time; defaults of that scale are reduced to
  small tasks, and others are those of TD3.
  """

  xla_pays_after: ClassVar[int] = 500
  schedulable: ClassVar[tuple[str, ...]] = ('target_update_rate',)

  hidden_sizes: tuple[int, ...] = agent_config.default(
    (256, 256), ': those of TD3'
  )
  num_samples: config_checks.PositiveInt = settings.field(
    64,
    'N, actions sampled per iteration of the cross-entropy method: the paper, '
    'section 4.3.',
  )
  num_elites: config_checks.PositiveInt = settings.field(
    6, 'M, best actions to which the next iteration is fitted: the paper.'
  )
  num_iterations: config_checks.PositiveInt = settings.field(
    2, 'Iterations of the cross-entropy method: the paper.'
  )
  initial_stddev: config_checks.PositiveFloat = settings.field(
    1.0,
    'Initial standard deviation of sampled actions, scaled to [−1, 1] and '
    'clipped: our choice, which includes the bounds.',
  )
  bounded: bool = settings.field(
    False,
    'Bound values to [0, 1] by a sigmoid and learn them by the cross-entropy, '
    'as in the paper, whose reward is 1 for a success; otherwise use squared '
    'errors.',
  )
  n_step: int = agent_config.default(1, ': the paper')
  discount: float = agent_config.default(
    0.99, ': that of TD3; the paper, appendix D, has 0.9'
  )
  batch_size: int = agent_config.default(256, ': that of TD3; the paper has 32')
  learning_rate: float = agent_config.default(1e-3, ': that of TD3')
  target_update_rate: config_checks.Rate = settings.field(
    0.005,
    'τ, rate of the moving average of the average Q-function, per learner '
    'step: that of TD3; the paper, section 4.2, has 0.0001.',
  )
  target_lag: config_checks.PositiveInt = settings.field(
    200,
    'Learner steps between copies of the average Q-function to the lagged '
    'one: our choice; in the paper it lags by about 6,000 steps.',
  )
  sigma: config_checks.NonNegativeFloat = settings.field(
    0.1,
    'Standard deviation of exploration noise, for actions scaled to [−1, 1]: '
    'that of TD3.',
  )
  num_random_steps: config_checks.NonNegativeInt = settings.field(
    1_000,
    'Initial steps with uniformly random actions, over all environments: that '
    'of TD3.',
  )
  train_buffer_size: config_checks.PositiveInt | None = settings.field(
    None,
    'Capacity of the train buffer of items with targets, which Bellman '
    'updaters fill, as in the paper; None to compute targets in the learner.',
  )
  samples_per_target: config_checks.PositiveFloat = settings.field(
    1.0,
    'Average samples per item of the train buffer: our choice. Larger values '
    'compute fewer targets; learner steps per environment step are unchanged.',
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check(
      self,
      'num_elites',
      self.num_elites <= self.num_samples,
      f'at most num_samples = {self.num_samples}',
    )
    config_checks.check(
      self,
      'normalize_rewards',
      not (self.bounded and self.normalize_rewards),
      'False with bounded, whose returns must be in [0, 1]',
    )
    has_updaters = self.train_buffer_size is not None
    config_checks.check(
      self,
      'prioritized',
      not (has_updaters and self.prioritized),
      'false with train_buffer_size, as Bellman updaters have no TD errors',
    )
    config_checks.check(
      self,
      'samples_per_target',
      has_updaters or self.samples_per_target == 1,
      'left out without train_buffer_size',
    )


PRESETS = {
  # For binary rewards at the end: the paper, section 4 and appendix D.
  'success': {'bounded': True, 'discount': 0.9},
}
