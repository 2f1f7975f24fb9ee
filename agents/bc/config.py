"""Config of BC."""

# A dataclass may remove inherited fields, which type checkers do not support.
# pyright: reportIncompatibleVariableOverride=false

import dataclasses
from typing import Any, ClassVar

from repertory.agents.interface import agent_config


@dataclasses.dataclass(frozen=True)
class BCConfig(agent_config.NetworkConfig):
  """Settings of BC, most of them those of TD3+BC, arXiv:2106.06860.

  Settings of rewards, replay servers and actors do not apply.
  """

  # Removes inherited fields.
  discount: ClassVar[float] = 1.0
  prefetch: ClassVar[int] = 1
  variable_update_period: ClassVar[int] = 1
  normalize_rewards: ClassVar[bool] = False

  hidden_sizes: tuple[int, ...] = agent_config.default(
    (256, 256), ': those of TD3+BC, arXiv:2106.06860'
  )
  batch_size: int = agent_config.default(256, ': as in TD3+BC')
  learning_rate: float = agent_config.default(3e-4, ': as in TD3+BC')


PRESETS: dict[str, dict[str, Any]] = {}
