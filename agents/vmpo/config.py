"""Config of V-MPO."""

import dataclasses
from typing import ClassVar

from repertory.agents.interface import agent_config, config_checks
from repertory.agents.unrolls import unroll_config
from repertory.components.config import settings


@dataclasses.dataclass(frozen=True)
class VMPOConfig(unroll_config.ActorCriticConfig):
  """Settings of V-MPO, with the sources of their defaults.

  "The paper" is arXiv:1909.12238; other defaults are those of PPO. They suit
  small environments with vector observations.
  """

  xla_pays_after: ClassVar[int] = 200
  schedulable: ClassVar[tuple[str, ...]] = (
    'dual_learning_rate',
    'epsilon',
    'epsilon_mean',
    'epsilon_policy',
    'epsilon_stddev',
  )

  normalize_rewards: bool = agent_config.default(
    True,
    ', so that learning is independent of their scale; the paper normalizes '
    'values instead (PopArt)',
  )
  unroll_length: int = agent_config.default(64)
  num_epochs: int = agent_config.default(
    4, ": PPO's; the paper has 1, and many more batches"
  )
  num_minibatches: int = agent_config.default(4, ": PPO's; the paper has 1")
  target_update_period: config_checks.PositiveInt = settings.field(
    1,
    'T_target, learner steps between copies to the target network, which '
    'acts; the paper has more, of one gradient step each.',
  )
  discount: float = agent_config.default(0.99, ': the paper')
  lambda_: float = agent_config.default(
    0.95, " (GAE): that of PPO; 1 for the paper's, up to the end of the unroll"
  )
  epsilon: config_checks.PositiveFloat = settings.field(
    0.1, 'ε_η, KL bound of the E-step, in nats.'
  )
  epsilon_policy: config_checks.PositiveFloat = settings.field(
    1e-2,
    'ε_α, KL bound of discrete policies between copies to the target network, '
    'in nats.',
  )
  epsilon_mean: config_checks.PositiveFloat = settings.field(
    1e-2,
    'ε_αμ, KL bound of the means of continuous actions, over all dimensions.',
  )
  epsilon_stddev: config_checks.PositiveFloat = settings.field(
    1e-3, 'ε_αΣ, KL bound of the standard deviations of continuous actions.'
  )
  initial_temperature: config_checks.PositiveFloat = settings.field(
    1.0, 'Initial temperature η: the paper.'
  )
  initial_alpha_policy: config_checks.PositiveFloat = settings.field(
    1.0, 'Initial KL multiplier α, for discrete actions.'
  )
  initial_alpha_mean: config_checks.PositiveFloat = settings.field(
    1.0, 'Initial KL multiplier α_μ.'
  )
  initial_alpha_stddev: config_checks.PositiveFloat = settings.field(
    1.0, 'Initial KL multiplier α_Σ.'
  )
  learning_rate: float = agent_config.default(1e-3)
  dual_learning_rate: config_checks.PositiveFloat = settings.field(
    1e-2, 'Learning rate of Adam for η and α.'
  )

  @property
  def min_minibatch_steps(self) -> int:
    return 2  # The top half of a single step is the step itself.


PRESETS = {}
