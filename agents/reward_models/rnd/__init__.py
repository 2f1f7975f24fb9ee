"""RND: intrinsic rewards of random network distillation."""

import dataclasses
from typing import TYPE_CHECKING

from repertory.agents.interface import agent_config, config_checks
from repertory.agents.reward_models import reward_model_config
from repertory.components.config import choices, lazy_imports, settings

if TYPE_CHECKING:
  from repertory.agents.reward_models.rnd.learning import RNDBuilder

__all__ = ['RNDBuilder', 'RNDConfig']

__getattr__, __dir__ = lazy_imports.modules(__name__)


@dataclasses.dataclass(frozen=True)
class RNDConfig(reward_model_config.RewardModelConfig):
  """Settings of RND, with the sources of their defaults."""

  intrinsic_coefficient: config_checks.PositiveFloat = settings.field(
    1.0, 'Weight of the intrinsic reward: arXiv:1810.12894, appendix.'
  )
  extrinsic_coefficient: config_checks.NonNegativeFloat = settings.field(
    2.0, "Weight of the environment's reward: appendix; 0 for pure exploration."
  )
  hidden_sizes: config_checks.Sizes = settings.field(
    (128, 128),
    'Hidden layer sizes of target and predictor network, for small '
    'environments; the paper has convolutions and 512.',
  )
  embedding_size: config_checks.PositiveInt = settings.field(
    64, 'Size of the predicted embedding; the paper has 512.'
  )
  image_torso: str = agent_config.image_torso()
  learning_rate: config_checks.PositiveFloat = settings.field(
    1e-4, 'Learning rate of Adam for the predictor: appendix.'
  )
  max_abs_observation: config_checks.PositiveFloat = settings.field(
    5.0, 'Normalized observations are clipped to ± this: section 2.4.'
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_one_of(self, 'image_torso', choices.IMAGE_TORSOS)
