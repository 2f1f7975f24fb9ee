"""SQIL: constant rewards for demonstrations."""

import dataclasses
from typing import TYPE_CHECKING

from repertory.agents.interface import config_checks
from repertory.agents.reward_models import reward_model_config
from repertory.components.config import lazy_imports, settings

if TYPE_CHECKING:
  from repertory.agents.reward_models.sqil.learning import SQILBuilder

__all__ = ['SQILBuilder', 'SQILConfig']

__getattr__, __dir__ = lazy_imports.modules(__name__)


@dataclasses.dataclass(frozen=True)
class SQILConfig(reward_model_config.RewardModelConfig):
  """Settings of SQIL, with the sources of their defaults."""

  demonstration_reward: config_checks.FiniteFloat = settings.field(
    1.0, 'Reward of demonstrated steps: arXiv:1905.11108, section 2.'
  )
  own_reward: config_checks.FiniteFloat = settings.field(
    0.0, "Reward of the agent's own steps: section 2."
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check(
      self,
      'demonstration_reward',
      self.demonstration_reward > self.own_reward,
      f'above own_reward, {self.own_reward:g}',
    )
