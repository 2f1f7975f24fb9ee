"""Settings of DQN."""

import dataclasses
from typing import ClassVar

from repertory.agents import config_checks, replay_config
from repertory.components import choices, settings


@dataclasses.dataclass(frozen=True)
class DQNConfig(replay_config.ReplayConfig):
  """Settings of DQN, each with where its default comes from.

  The defaults suit small environments with vector observations.
  """

  xla_pays_after: ClassVar[int] = 3_000

  hidden_sizes: tuple[int, ...] = settings.field(
    (128, 128), 'Layers of the network before its head.'
  )
  image_torso: str = settings.field(
    'auto',
    "Convolutions for image leaves: 'nature', 'residual', 'data_efficient', "
    "'minatar' or, by the size of each, 'auto', see docs/environments.md.",
  )
  dueling: bool = settings.field(
    True, 'Separate streams for state value and advantages (arXiv:1511.06581).'
  )
  double: bool = settings.field(
    True,
    'Select with the online, evaluate with the target network '
    '(arXiv:1509.06461).',
  )
  n_step: int = settings.field(
    3, 'Steps a transition spans: Rainbow, arXiv:1710.02298, table 1.'
  )
  discount: float = settings.field(
    0.99, 'γ: Nature DQN, doi:10.1038/nature14236, extended data table 1.'
  )
  max_abs_reward: float | None = settings.field(
    None,
    'Rewards are clipped to ± this before they are summed up; None leaves them '
    'as they are. Nature DQN has 1.',
  )
  batch_size: int = settings.field(32, 'Items a learner step samples.')
  learning_rate: float = settings.field(
    1e-3, 'Step size of Adam; a common choice for small networks.'
  )
  adam_epsilon: float = settings.field(
    1.5e-4, "Added to Adam's denominator: Rainbow, table 1."
  )
  max_gradient_norm: float = settings.field(
    10.0,
    'Global norm at which gradients are clipped: dueling DQN, section 4.2.',
  )
  huber_threshold: float = settings.field(
    1.0, 'Where the Huber loss turns linear: Nature DQN, "error clipping".'
  )
  target_update_period: int = settings.field(
    50, 'Learner steps between copies to the target network.'
  )
  prioritized: bool = settings.field(
    True, 'Sample by priority (arXiv:1511.05952) or uniformly.'
  )
  epsilon_base: float = settings.field(
    0.4, 'Largest ε of the ladder over the environments: Ape-X, section 4.1.'
  )
  epsilon_exponent: float = settings.field(
    7.0, 'Steepness of the ladder: Ape-X, section 4.1.'
  )
  epsilon_anneal_steps: int = settings.field(
    3_000,
    'Steps, over all environments, in which ε falls from 1 to its place on the '
    'ladder: Nature DQN, methods, scaled down to small environments.',
  )
  evaluation_epsilon: float = settings.field(0.0, 'ε of the evaluation policy.')
  max_replay_size: int = settings.field(100_000, 'Items the table holds.')
  min_replay_size: int = settings.field(200, 'Items before learning starts.')
  samples_per_insert: float = settings.field(
    16.0,
    'Mean draws per item: with batches of 32, a learner step every 2 steps; '
    'Nature DQN takes one every 4, but small networks can afford more.',
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check_one_of(self, 'image_torso', choices.IMAGE_TORSOS)
    config_checks.check_at_least(self, 1, 'n_step', 'target_update_period')
    config_checks.check_at_least(
      self, 0, 'epsilon_exponent', 'epsilon_anneal_steps'
    )
    config_checks.check_positive(
      self, 'adam_epsilon', 'max_gradient_norm', 'huber_threshold',
      'max_abs_reward',
    )  # fmt: skip
    config_checks.check_fraction(self, 'evaluation_epsilon')
    config_checks.check(
      self, 'epsilon_base', 0 < self.epsilon_base <= 1, 'in (0, 1]'
    )


PRESETS = {
  # Rainbow without distribution and noise: arXiv:1710.02298, table 1, where
  # four frames are a step and there is an update every four steps. ε is that of
  # its ablation without noisy networks, which falls over 250,000 frames. β
  # rises over its 200 million frames: 50 million steps, a learner step for
  # every four.
  'atari': {
    'hidden_sizes': (512,),
    'max_abs_reward': 1.0,
    'learning_rate': 6.25e-5,
    'target_update_period': 2_000,
    'priority_exponent': 0.5,
    'importance_anneal_learner_steps': 12_500_000,
    'epsilon_base': 0.01,
    'epsilon_exponent': 0.0,
    'epsilon_anneal_steps': 62_500,
    'evaluation_epsilon': 0.001,
    'max_replay_size': 1_000_000,
    'min_replay_size': 20_000,
    'samples_per_insert': 8.0,
    'jit_compile': False,
  },
  # DQN of Young & Tian, arXiv:1903.03176, section 4, and their code, for 5
  # million steps: plain Q-learning, a learner step for each step. They have
  # centered RMSProp with momentum and clip no gradients.
  'minatar': {
    'hidden_sizes': (128,),
    'image_torso': 'minatar',
    'dueling': False,
    'double': False,
    'n_step': 1,
    'prioritized': False,
    'learning_rate': 2.5e-4,
    'target_update_period': 1_000,
    'epsilon_base': 0.1,
    'epsilon_exponent': 0.0,
    'epsilon_anneal_steps': 100_000,
    'min_replay_size': 5_000,
    'samples_per_insert': 32.0,
    'jit_compile': False,
  },
}
