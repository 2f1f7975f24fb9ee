"""Registry of reward models."""

import dataclasses
import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from repertory.agents.interface import registry as agents_registry
from repertory.agents.reward_models import reward_model_config as config_lib
from repertory.components.config import settings as settings_lib
from repertory.components.config.settings import SettingError

if TYPE_CHECKING:
  from repertory.agents.reward_models import reward_model_builder


@dataclasses.dataclass(frozen=True)
class RewardModel:
  """Metadata of a reward model.

  Attributes:
    name: Value of `--reward_model`.
    description: One-line summary.
    config_class: Subclass of `RewardModelConfig`, with a default for each
      setting.
  """

  name: str
  description: str
  config_class: type[config_lib.RewardModelConfig]

  @property
  def builder_class(self) -> 'type[reward_model_builder.RewardModelBuilder]':
    """The class, called with a builder and a config; imports TensorFlow."""
    return pkgutil.resolve_name(
      f'repertory.agents.reward_models.{self.name}:{self.name.upper()}Builder'
    )


_REWARD_MODELS = (
  RewardModel(
    'gail',
    'Imitation learning by a discriminator: GAIL and DAC; for agents with '
    'replay.',
    config_lib.GAILConfig,
  ),
  RewardModel(
    'rnd', 'Exploration by random network distillation.', config_lib.RNDConfig
  ),
  RewardModel(
    'sqil',
    'Imitation learning by constant rewards: SQIL; for agents with replay.',
    config_lib.SQILConfig,
  ),
)


def reward_models() -> tuple[RewardModel, ...]:
  """Returns all reward models."""
  return _REWARD_MODELS


def get(name: str) -> RewardModel:
  """Returns a reward model by name.

  Raises:
    SettingError: If the name is unknown, with a suggestion.
  """
  by_name = {model.name: model for model in _REWARD_MODELS}
  if name not in by_name:
    hint = settings_lib.did_you_mean(name, by_name)
    raise SettingError(
      config_lib.REWARD_MODEL,
      f"must be one of {', '.join(by_name)}, got '{name}'.{hint}",
    )
  return by_name[name]


def make_config(
  name: str | None, settings: Mapping[str, Any]
) -> config_lib.RewardModelConfig | None:
  """Creates the config of a reward model.

  Args:
    name: Name such as 'rnd'; None for no reward model.
    settings: Values by config field, as Python values or as text.

  Raises:
    SettingError: If the name or a field is unknown, or a value is invalid. Its
      settings are called `reward_model.<name>`.
  """
  if name is None and settings:
    raise SettingError(
      config_lib.REWARD_MODEL,
      f'must be given with its settings {", ".join(sorted(settings))}, got '
      'None.',
    )
  if name is None:
    return None
  config_class = get(name).config_class
  values = agents_registry.parse_settings(
    settings, config_class, config_lib.REWARD_MODEL, f"'{name}'",
    f'repertory reward_models {name}',
  )  # fmt: skip
  try:
    return config_class(**values)
  except SettingError as error:
    name = config_lib.PREFIX + error.setting
    raise SettingError(name, error.problem) from error
