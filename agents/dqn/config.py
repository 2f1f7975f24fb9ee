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
  distribution: str = settings.field(
    'none',
    "How values tell the return: 'none' by its mean, 'categorical' by atoms "
    "(C51, arXiv:1707.06887), 'quantile' (QR-DQN, arXiv:1710.10044) or "
    "'implicit_quantile' (IQN, arXiv:1806.06923).",
  )
  num_atoms: int = settings.field(
    101,
    'Atoms of a categorical distribution: twice the 51 of C51, for a support '
    'ten times as wide.',
  )
  vmin: float = settings.field(
    -100.0,
    'Least return that a categorical distribution can tell, the smallest atom. '
    'With γ = 0.99, rewards in [−1, 1] give returns within ±100. Values beyond '
    'are cut off.',
  )
  vmax: float = settings.field(
    100.0, 'Largest return that it can tell, the largest atom.'
  )
  num_quantiles: int = settings.field(
    51,
    'Quantiles of a quantile distribution; QR-DQN, section 5, has 200, at 15 '
    'times the cost of the loss.',
  )
  num_taus: int = settings.field(
    64, 'τ that implicit quantiles are learned at: N of IQN, section 4.'
  )
  num_target_taus: int = settings.field(
    64, "τ of the target of implicit quantiles: N' of IQN, section 4."
  )
  num_policy_taus: int = settings.field(
    32, 'τ whose mean is the value of implicit quantiles: K of IQN, section 4.'
  )
  conservative_weight: float | None = settings.field(
    None,
    'How much values of actions that are not in the data are held down, for '
    'learning from data alone; None for not at all. CQL, arXiv:2006.04779, '
    'appendix F, has 1 or, with little data, 4.',
  )
  margin_weight: float | None = settings.field(
    None,
    'How much what was demonstrated is put above all else in the same state; '
    'None for not at all. DQfD, arXiv:1704.03732, section 5.1, has 1.',
  )
  margin: float = settings.field(
    0.8, 'By how much it is to be better: DQfD, section 5.1.'
  )
  noisy: bool = settings.field(
    False,
    'Explore by noise on the weights of all dense layers (arXiv:1706.10295), '
    'beside ε.',
  )
  noisy_sigma: float = settings.field(
    0.5, 'σ_0, how large the noise is at first: its paper, section 3.2.'
  )
  munchausen: bool = settings.field(
    False,
    'Add the scaled log-policy to rewards and bootstrap from all actions, in '
    'place of double (arXiv:2007.14430).',
  )
  munchausen_alpha: float = settings.field(
    0.9, "α, the share of the log-policy that is added: its paper's."
  )
  munchausen_temperature: float = settings.field(
    0.03, "τ, the temperature of the policy: its paper's."
  )
  munchausen_clip: float = settings.field(
    -1.0, "l_0, least scaled log-policy that is added: its paper's."
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
    1.0,
    'Where the Huber loss turns linear: Nature DQN, "error clipping"; of '
    'quantiles, κ of QR-DQN and IQN.',
  )
  target_update_period: int = settings.field(
    50, 'Learner steps between copies to the target network.'
  )
  prioritized: bool = settings.field(
    True, 'Sample by priority (arXiv:1511.05952) or uniformly.'
  )
  epsilon_base: float = settings.field(
    0.4,
    'Largest ε of the ladder over the environments: Ape-X, section 4.1. With '
    'noisy networks it may be 0.',
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
    config_checks.check_one_of(
      self, 'distribution', choices.RETURN_DISTRIBUTIONS
    )
    config_checks.check_support(self)
    config_checks.check_at_least(
      self, 1, 'n_step', 'target_update_period', 'num_quantiles', 'num_taus',
      'num_target_taus', 'num_policy_taus',
    )  # fmt: skip
    config_checks.check_at_least(
      self, 0, 'conservative_weight', 'margin_weight', 'margin'
    )
    config_checks.check_finite(self, 'munchausen_clip')
    config_checks.check(
      self, 'munchausen_clip', self.munchausen_clip <= 0, 'at most 0'
    )
    config_checks.check_at_least(
      self, 0, 'epsilon_exponent', 'epsilon_anneal_steps'
    )
    config_checks.check_positive(
      self, 'adam_epsilon', 'max_gradient_norm', 'huber_threshold',
      'max_abs_reward', 'noisy_sigma', 'munchausen_temperature',
    )  # fmt: skip
    config_checks.check_fraction(self, 'evaluation_epsilon', 'munchausen_alpha')
    is_epsilon = 0 < self.epsilon_base <= 1
    config_checks.check(
      self,
      'epsilon_base',
      is_epsilon or (self.noisy and self.epsilon_base == 0),
      'in (0, 1], or 0 with noisy networks',
    )


# What Rainbow has, whichever its parts: arXiv:1710.02298, table 1, where four
# frames are a step and there is an update every four steps. β rises over its
# 200 million frames: 50 million steps, a learner step for every four.
_ATARI = {
  'hidden_sizes': (512,),
  'max_abs_reward': 1.0,
  'learning_rate': 6.25e-5,
  'target_update_period': 2_000,
  'priority_exponent': 0.5,
  'importance_anneal_learner_steps': 12_500_000,
  'epsilon_exponent': 0.0,
  'max_replay_size': 1_000_000,
  'min_replay_size': 20_000,
  'samples_per_insert': 8.0,
  'jit_compile': False,
}
PRESETS = {
  # For learning from data alone: arXiv:2006.04779, appendix F, on QR-DQN.
  'cql': {
    'conservative_weight': 1.0,
    'distribution': 'quantile',
    'prioritized': False,
  },
  # With demonstrations: arXiv:1704.03732, section 5.1. It learns from one step
  # and from ten; this one from ten alone.
  'dqfd': {
    'margin_weight': 1.0,
    'n_step': 10,
    'epsilon_base': 0.01,
    'epsilon_anneal_steps': 0,
  },
  # Rainbow without distribution and noise. ε is that of its ablation without
  # noisy networks, which falls over 250,000 frames.
  'atari': {
    **_ATARI,
    'epsilon_base': 0.01,
    'epsilon_anneal_steps': 62_500,
    'evaluation_epsilon': 0.001,
  },
  # All of Rainbow, for Atari as it is published.
  'rainbow': {
    **_ATARI,
    'distribution': 'categorical',
    'num_atoms': 51,
    'vmin': -10.0,
    'vmax': 10.0,
    'noisy': True,
    'epsilon_base': 0.0,
    'epsilon_anneal_steps': 0,
  },
  # All of Rainbow with the defaults, for small environments.
  'rainbow_small': {
    'distribution': 'categorical',
    'noisy': True,
    'epsilon_base': 0.0,
    'epsilon_anneal_steps': 0,
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
