"""Config of TD3."""

import dataclasses
from typing import ClassVar

from repertory.agents.interface import agent_config, config_checks
from repertory.agents.replay import replay_config
from repertory.components.config import settings


@dataclasses.dataclass(frozen=True)
class TD3Config(replay_config.HindsightConfig):
  """Settings of TD3, with the sources of their defaults.

  "The paper" is arXiv:1802.09477, which samples uniformly, "the authors" the
  code that they published with it.
  """

  xla_pays_after: ClassVar[int] = 500
  schedulable: ClassVar[tuple[str, ...]] = (
    'behavior_cloning_alpha',
    'target_noise_limit',
    'target_sigma',
    'target_update_rate',
  )

  hidden_sizes: tuple[int, ...] = agent_config.default(
    (256, 256), ": the authors'; the paper, appendix C, has (400, 300)"
  )
  num_critics: config_checks.PositiveInt = settings.field(
    2,
    'Number of critics, whose minimum is used: the paper, section 4.2; DDPG '
    'has 1.',
  )
  policy_update_period: config_checks.PositiveInt = settings.field(
    2,
    'Learner steps between updates of policy and target networks: the paper, '
    'section 5.2; DDPG has 1.',
  )
  target_sigma: config_checks.NonNegativeFloat = settings.field(
    0.2,
    'Standard deviation of target policy smoothing noise, for actions scaled '
    'to [−1, 1]: the paper, section 5.3; DDPG has 0.',
  )
  target_noise_limit: config_checks.NonNegativeFloat = settings.field(
    0.5,
    'Clipping range of target policy smoothing noise: the paper, section 5.3.',
  )
  behavior_cloning_alpha: config_checks.PositiveFloat | None = settings.field(
    None,
    'α of TD3+BC, arXiv:2106.06860, which has 2.5: smaller values keep the '
    "policy closer to the data set's actions. None to disable behavior "
    'cloning.',
  )
  n_step: int = agent_config.default(1, ': the paper')
  discount: float = agent_config.default(0.99, ': the paper, appendix C')
  batch_size: int = agent_config.default(
    256, ": the authors'; the paper has 100"
  )
  learning_rate: float = agent_config.default(
    1e-3,
    ": the paper, appendix C; its authors' code has 3e-4, with which Pendulum "
    'takes longer',
  )
  target_update_rate: config_checks.Rate = settings.field(
    0.005,
    'τ, rate of the moving average of the target networks, per policy step: '
    'the paper, section 6.1.',
  )
  sigma: config_checks.NonNegativeFloat = settings.field(
    0.1,
    'Standard deviation of exploration noise, for actions scaled to [−1, 1]: '
    'the paper, section 6.1.',
  )
  num_random_steps: config_checks.NonNegativeInt = settings.field(
    1_000,
    'Initial steps with uniformly random actions, over all environments: the '
    'paper, section 6.1, for the easier environments; the authors have 25,000.',
  )
  noise_correlation: config_checks.Share = settings.field(
    0.0, replay_config.NOISE_CORRELATION
  )
  max_replay_size: int = agent_config.default(
    1_000_000, ': the paper keeps all'
  )


PRESETS = {
  # Without the additions of TD3: arXiv:1509.02971, with TD3's other settings.
  'ddpg': {'num_critics': 1, 'policy_update_period': 1, 'target_sigma': 0.0},
  # Offline: arXiv:2106.06860, table 3, without observation normalization.
  'td3_bc': {'behavior_cloning_alpha': 2.5, 'learning_rate': 3e-4},
}
