"""Config of DQN."""

import dataclasses
from typing import Annotated, ClassVar, Literal

from repertory.agents.interface import agent_config, config_checks
from repertory.agents.replay import replay_config
from repertory.components.config import settings


@dataclasses.dataclass(frozen=True)
class DQNConfig(
  replay_config.HindsightConfig,
  agent_config.CategoricalConfig,
  agent_config.EpsilonConfig,
):
  """Settings of DQN, with the sources of their defaults.

  The defaults suit small environments with vector observations.
  """

  xla_pays_after: ClassVar[int] = 3_000
  schedulable: ClassVar[tuple[str, ...]] = (
    'conservative_weight',
    'huber_threshold',
    'margin',
    'margin_weight',
    'munchausen_alpha',
    'munchausen_clip',
    'munchausen_temperature',
  )

  hidden_sizes: tuple[int, ...] = agent_config.default(
    (128, 128), ', before its head'
  )
  dueling: bool = settings.field(
    True,
    'Use the dueling architecture, with separate streams for state value and '
    'advantages (arXiv:1511.06581).',
  )
  double: bool = settings.field(
    True,
    'Use double Q-learning: select actions with the online network and '
    'evaluate with the target network (arXiv:1509.06461).',
  )
  distribution: Literal[
    'none', 'categorical', 'quantile', 'implicit_quantile'
  ] = settings.field(
    'none',
    "Representation of returns: 'none' for expected values, 'categorical' "
    "(C51, arXiv:1707.06887), 'quantile' (QR-DQN, arXiv:1710.10044) or "
    "'implicit_quantile' (IQN, arXiv:1806.06923).",
  )
  num_atoms: int = agent_config.default(
    101, '; twice as many for a support ten times as wide'
  )
  vmin: float = agent_config.default(
    -100.0, '. With γ = 0.99, rewards in [−1, 1] give returns within ±100'
  )
  vmax: float = agent_config.default(100.0)
  num_quantiles: config_checks.PositiveInt = settings.field(
    51,
    'Quantiles of QR-DQN, whose paper has 200 (section 5), at 15 times the '
    'cost of the loss.',
  )
  num_taus: config_checks.PositiveInt = settings.field(
    64, 'N of IQN, samples of τ for the loss: section 4.'
  )
  num_target_taus: config_checks.PositiveInt = settings.field(
    64, "N' of IQN, samples of τ for the targets: section 4."
  )
  num_policy_taus: config_checks.PositiveInt = settings.field(
    32, 'K of IQN, values of τ averaged for action values: section 4.'
  )
  conservative_weight: config_checks.NonNegativeFloat | None = settings.field(
    None,
    'Weight of the CQL regularizer, for offline learning; None to disable. '
    'CQL, arXiv:2006.04779, appendix F, has 1 or, with little data, 4.',
  )
  margin_weight: config_checks.NonNegativeFloat | None = settings.field(
    None,
    'Weight of the large-margin imitation loss on demonstrations (DQfD); None '
    'to disable. DQfD, arXiv:1704.03732, section 5.1, has 1.',
  )
  margin: config_checks.NonNegativeFloat = settings.field(
    0.8, 'Margin of the large-margin loss: DQfD, section 5.1.'
  )
  noisy: bool = settings.field(
    False,
    'Explore with noisy networks (NoisyNet, arXiv:1706.10295), in addition to '
    'ε.',
  )
  noisy_sigma: config_checks.PositiveFloat = settings.field(
    0.5, 'σ_0, initial noise scale of noisy networks: NoisyNet, section 3.2.'
  )
  munchausen: bool = settings.field(
    False,
    'Use Munchausen DQN (arXiv:2007.14430): add the scaled log-policy to '
    'rewards and bootstrap from all actions, instead of double Q-learning.',
  )
  munchausen_alpha: config_checks.Fraction = settings.field(
    0.9, 'α of Munchausen DQN, weight of the log-policy: the paper.'
  )
  munchausen_temperature: config_checks.PositiveFloat = settings.field(
    0.03, 'τ of Munchausen DQN, temperature of the policy: the paper.'
  )
  munchausen_clip: Annotated[
    config_checks.FiniteFloat,
    config_checks.where(lambda x: x <= 0, 'at most 0'),
  ] = settings.field(
    -1.0, 'l_0 of Munchausen DQN, minimum of the scaled log-policy: the paper.'
  )
  n_step: int = agent_config.default(3, ': Rainbow, arXiv:1710.02298, table 1')
  discount: float = agent_config.default(
    0.99, ': Nature DQN, doi:10.1038/nature14236, extended data table 1'
  )
  max_abs_reward: config_checks.PositiveFloat | None = settings.field(
    None,
    'Rewards are clipped to ± this before they are summed up; None for no '
    'clipping. Nature DQN has 1.',
  )
  batch_size: int = agent_config.default(32)
  learning_rate: float = agent_config.default(
    1e-3, ': a common choice for small networks'
  )
  adam_epsilon: float = settings.field(
    1.5e-4, 'ε of Adam, added to the denominator: Rainbow, table 1.'
  )
  max_gradient_norm: float | None = agent_config.default(
    10.0, ': dueling DQN, section 4.2'
  )
  huber_threshold: config_checks.PositiveFloat = settings.field(
    1.0,
    'Error at which the Huber loss becomes linear: Nature DQN, "error '
    'clipping"; κ of QR-DQN and IQN.',
  )
  target_update_period: config_checks.PositiveInt = settings.field(
    50, 'Learner steps between target network updates.'
  )
  prioritized: bool = agent_config.default(True)
  epsilon_base: float = agent_config.default(
    0.4, '. With noisy networks it may be 0'
  )
  max_replay_size: int = agent_config.default(100_000)
  min_replay_size: int = agent_config.default(200)
  samples_per_insert: float = agent_config.default(
    16.0,
    '. 16 is one per 2 environment steps; Nature DQN has one per 4, but small '
    'networks can afford more',
  )

  def _check_epsilon_base(self) -> None:
    config_checks.check(
      self,
      'epsilon_base',
      0 < self.epsilon_base <= 1 or (self.noisy and self.epsilon_base == 0),
      'in (0, 1], or 0 with noisy networks',
    )


# Shared settings of Rainbow and its ablations: arXiv:1710.02298, table 1, with
# 4 frames per step and an update every 4 steps. β is annealed over 200 million
# frames: 50 million steps, one learner step per 4.
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
  # Offline learning: arXiv:2006.04779, appendix F, on QR-DQN.
  'cql': {
    'conservative_weight': 1.0,
    'distribution': 'quantile',
    'prioritized': False,
  },
  # With demonstrations: arXiv:1704.03732, section 5.1, which learns from 1-step
  # and 10-step returns; here only from the latter.
  'dqfd': {
    'margin_weight': 1.0,
    'n_step': 10,
    'epsilon_base': 0.01,
    'epsilon_anneal_steps': 0,
  },
  # Rainbow without distributional returns and noise, with ε of its ablation
  # without noisy networks, which decays over 250,000 frames.
  'atari': {
    **_ATARI,
    'epsilon_base': 0.01,
    'epsilon_anneal_steps': 62_500,
    'evaluation_epsilon': 0.001,
  },
  # Rainbow for Atari, as published.
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
  # Rainbow for small environments.
  'rainbow_small': {
    'distribution': 'categorical',
    'noisy': True,
    'epsilon_base': 0.0,
    'epsilon_anneal_steps': 0,
  },
  # DQN of Young & Tian, arXiv:1903.03176, section 4, and their code, for 5
  # million steps: Q-learning with one learner step per environment step. They
  # use centered RMSProp with momentum, without gradient clipping.
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
