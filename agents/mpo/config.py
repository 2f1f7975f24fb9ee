"""Config of MPO."""

import dataclasses
from typing import ClassVar, Literal

from repertory.agents.interface import agent_config, config_checks
from repertory.agents.replay import replay_config
from repertory.components.config import settings


@dataclasses.dataclass(frozen=True)
class MPOConfig(
  replay_config.TransitionReplayConfig, agent_config.CategoricalConfig
):
  """Settings of MPO, with the sources of their defaults.

  "Acme" is the MPO agent of dm-acme, which samples uniformly. The defaults suit
  small environments with vector observations.
  """

  xla_pays_after: ClassVar[int] = 500
  schedulable: ClassVar[tuple[str, ...]] = (
    'dual_learning_rate',
    'epsilon',
    'epsilon_mean',
    'epsilon_penalty',
    'epsilon_policy',
    'epsilon_stddev',
  )

  hidden_sizes: config_checks.NonEmptySizes = agent_config.default(
    (256, 256),
    ', with layer normalization of the first layer; Acme has (256, 256, 256) '
    'and (512, 512, 256)',
  )
  distribution: Literal['none', 'categorical'] = settings.field(
    'none',
    "Output of the critic: expected returns ('none') or, as DMPO, a "
    "categorical distribution ('categorical').",
  )
  num_samples: config_checks.PositiveInt = settings.field(
    20,
    "N, actions sampled in each state, if they are continuous: Acme's. "
    'Discrete actions are all summed over.',
  )
  n_step: int = agent_config.default(3, '; Acme has 5')
  discount: float = agent_config.default(0.99, ": Acme's")
  batch_size: int = agent_config.default(256, ": Acme's")
  learning_rate: float = agent_config.default(
    5e-4, "; for small networks larger than Acme's 1e-4"
  )
  dual_learning_rate: config_checks.PositiveFloat = settings.field(
    1e-2, "Learning rate of Adam for temperatures and KL multipliers: Acme's."
  )
  max_gradient_norm: float | None = agent_config.default(
    None, '. Acme has 40, which slows down a critic of large values'
  )
  epsilon: config_checks.PositiveFloat = settings.field(
    0.1, "ε, KL bound of the E-step, in nats: Acme's."
  )
  epsilon_mean: config_checks.PositiveFloat = settings.field(
    2.5e-3,
    'ε_μ, KL bound of the means between target network updates, for each '
    "dimension of a continuous action: Acme's.",
  )
  epsilon_stddev: config_checks.PositiveFloat = settings.field(
    1e-4,
    'ε_σ, KL bound of the standard deviations, large enough for short runs; '
    'Acme has 1e-6.',
  )
  epsilon_policy: config_checks.PositiveFloat = settings.field(
    1e-2, 'ε_π, KL bound of discrete policies; Acme has 2.5e-3.'
  )
  initial_temperature: config_checks.PositiveFloat = settings.field(
    1.0, 'Initial temperature η of each E-step; Acme has 10.'
  )
  initial_alpha_mean: config_checks.PositiveFloat = settings.field(
    1.0, 'Initial KL multiplier α_μ; Acme has 10.'
  )
  initial_alpha_stddev: config_checks.PositiveFloat = settings.field(
    10.0, 'Initial KL multiplier α_σ; Acme has 1,000.'
  )
  initial_alpha_policy: config_checks.PositiveFloat = settings.field(
    1.0, 'Initial KL multiplier α_π, for discrete actions; Acme has 3.'
  )
  epsilon_penalty: config_checks.PositiveFloat | None = settings.field(
    1e-3,
    'KL bound of a second E-step that penalizes continuous actions out of '
    "bounds (MO-MPO, arXiv:2005.07513): Acme's; None to disable.",
  )
  initial_stddev: config_checks.PositiveFloat = settings.field(
    0.7,
    'Initial standard deviation of the policy, for actions scaled to [−1, 1]: '
    "the networks of Acme's examples.",
  )
  target_update_period: config_checks.PositiveInt = settings.field(
    25, 'Learner steps between target network updates; Acme has 100.'
  )
  samples_per_insert: float = agent_config.default(
    128.0, '. 128 is one per 2 environment steps; Acme has one per 8'
  )

  @property
  def num_critic_outputs(self) -> int:
    """Critic outputs for each action."""
    return self.num_atoms if self.distribution == 'categorical' else 1


PRESETS = {
  # Acme's DMPO for the control suite, whose rewards are in [0, 1],
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
