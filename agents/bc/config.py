"""Config of BC."""

# A dataclass may remove inherited fields, which type checkers do not support.
# pyright: reportIncompatibleVariableOverride=false

import dataclasses
from typing import Any, ClassVar

from repertory.agents.interface import (
  agent_config,
  config_checks,
  config_fields,
)
from repertory.components.config import choices, settings


@dataclasses.dataclass(frozen=True)
class BCConfig(agent_config.AgentConfig):
  """Settings of BC, with the sources of their defaults.

  Settings of returns, replay servers and actors do not apply.
  """

  # Removes inherited fields.
  discount: ClassVar[float] = 1.0
  prefetch: ClassVar[int] = 1
  variable_update_period: ClassVar[int] = 1

  hidden_sizes: tuple[int, ...] = settings.field(
    (256, 256),
    'Hidden layer sizes of the network: those of TD3+BC, arXiv:2106.06860.',
  )
  image_torso: str = config_fields.image_torso()
  batch_size: int = settings.field(
    256, 'Items per gradient step: as in TD3+BC.'
  )
  learning_rate: float = settings.field(
    3e-4, 'Learning rate of Adam: as in TD3+BC.'
  )
  adam_epsilon: float = config_fields.adam_epsilon()
  max_gradient_norm: float | None = settings.field(
    None, 'Maximum global norm of gradients; None for no clipping.'
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check_one_of(self, 'image_torso', choices.IMAGE_TORSOS)
    config_checks.check_positive(self, 'adam_epsilon', 'max_gradient_norm')


PRESETS: dict[str, dict[str, Any]] = {}
