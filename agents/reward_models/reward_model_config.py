"""Configs of reward models, and the names of their settings."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Literal

from repertory.agents.interface import agent_config, config_checks
from repertory.components.config import settings

# Name of the flag and of the entry in run identities; settings have it as a
# prefix, with a dot.
REWARD_MODEL = 'reward_model'
PREFIX = f'{REWARD_MODEL}.'


def renamed(name: str) -> str:
  """Maps earlier names of settings to present ones.

  They are `wrap`, `wrap.<name>` and `config.scale_rewards`.
  """
  if name == 'config.scale_rewards':
    return 'config.normalize_rewards'
  return re.sub(r'^wrap(?=$|\.|_config$)', REWARD_MODEL, name)


def with_present_names(stored: Mapping[str, Any]) -> dict[str, Any]:
  """Returns settings by their present names, see `renamed`."""
  return {renamed(name): value for name, value in stored.items()}


@dataclasses.dataclass(frozen=True)
class RewardModelConfig:
  """Config of a reward model: a frozen dataclass that validates itself.

  All fields are saved in checkpoints; a run resumes only if they are unchanged,
  as for agents.
  """

  def __post_init__(self):
    config_checks.check_fields(self)


@dataclasses.dataclass(frozen=True)
class GAILConfig(RewardModelConfig):
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
  image_torso: config_checks.ImageTorso = settings.field(
    'auto', agent_config.IMAGE_TORSO
  )
  learning_rate: config_checks.PositiveFloat = settings.field(
    1e-3,
    'Learning rate of Adam for the discriminator: the code of '
    'arXiv:1809.02925.',
  )
  gradient_penalty_coefficient: config_checks.NonNegativeFloat = settings.field(
    10.0, 'λ of the gradient penalty: arXiv:1704.00028, section 4.'
  )


@dataclasses.dataclass(frozen=True)
class RNDConfig(RewardModelConfig):
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
  image_torso: config_checks.ImageTorso = settings.field(
    'auto', agent_config.IMAGE_TORSO
  )
  learning_rate: config_checks.PositiveFloat = settings.field(
    1e-4, 'Learning rate of Adam for the predictor: appendix.'
  )
  max_abs_observation: config_checks.PositiveFloat = settings.field(
    5.0, 'Normalized observations are clipped to ± this: section 2.4.'
  )


@dataclasses.dataclass(frozen=True)
class SQILConfig(RewardModelConfig):
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
