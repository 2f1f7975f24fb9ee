"""GAIL and DAC: rewards of a discriminator for imitation."""

import dataclasses
from typing import TYPE_CHECKING, Literal

from repertory.agents.interface import agent_config, config_checks
from repertory.agents.reward_models import reward_model_config
from repertory.components.config import choices, lazy_imports, settings

if TYPE_CHECKING:
  from repertory.agents.reward_models.gail.learning import GAILBuilder

__all__ = ['GAILBuilder', 'GAILConfig']

__getattr__, __dir__ = lazy_imports.modules(__name__)


@dataclasses.dataclass(frozen=True)
class GAILConfig(reward_model_config.RewardModelConfig):
  """Settings of GAIL, with the sources of their defaults."""

  reward: Literal['gail', 'airl'] = settings.field(
    'gail',
    "'gail' for −log(1 − D), which is never negative and suits tasks that "
    "reward long episodes; 'airl' for log D − log(1 − D), as in DAC.",
  )
  hidden_sizes: config_checks.Sizes = settings.field(
    (256, 256),
    'Hidden layer sizes of the discriminator, with ReLU: the code of '
    'arXiv:1809.02925, which has tanh.',
  )
  image_torso: str = agent_config.image_torso()
  learning_rate: config_checks.PositiveFloat = settings.field(
    1e-3,
    'Learning rate of Adam for the discriminator: the code of '
    'arXiv:1809.02925.',
  )
  gradient_penalty_coefficient: config_checks.NonNegativeFloat = settings.field(
    10.0, 'λ of the gradient penalty: arXiv:1704.00028, section 4.'
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_one_of(self, 'reward', ('gail', 'airl'))
    config_checks.check_one_of(self, 'image_torso', choices.IMAGE_TORSOS)
