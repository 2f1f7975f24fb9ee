"""Base class of configs of reward models, and the names of their settings."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from repertory.agents.interface import config_checks

# Name of the flag and of the entry in run identities; settings have it as a
# prefix, with a dot.
REWARD_MODEL = 'reward_model'
PREFIX = f'{REWARD_MODEL}.'


def renamed(name: str) -> str:
  """Maps earlier names of settings to present ones: `wrap`, `wrap.<name>`."""
  return re.sub(r'^wrap(?=$|\.|_config$)', REWARD_MODEL, name)


def with_present_names(settings: Mapping[str, Any]) -> dict[str, Any]:
  """Returns settings by their present names, see `renamed`."""
  return {renamed(name): value for name, value in settings.items()}


@dataclasses.dataclass(frozen=True)
class RewardModelConfig:
  """Config of a reward model: a frozen dataclass that validates itself.

  All fields are saved in checkpoints; a run resumes only if they are unchanged,
  as for agents.
  """

  def __post_init__(self):
    config_checks.check_fields(self)
