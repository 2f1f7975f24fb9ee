"""Settings of BC."""

# A dataclass may take back fields; type checkers know nothing of that.
# pyright: reportIncompatibleVariableOverride=false

import dataclasses
from typing import Any, ClassVar

from repertory.agents import agent_config, config_checks
from repertory.components import choices, settings


@dataclasses.dataclass(frozen=True)
class BCConfig(agent_config.AgentConfig):
  """Settings of BC, each with where its default comes from.

  What returns, replay servers and actors would need is no setting here.
  """

  # Fields of every agent that this one takes back.
  discount: ClassVar[float] = 1.0
  prefetch: ClassVar[int] = 1
  variable_update_period: ClassVar[int] = 1

  hidden_sizes: tuple[int, ...] = settings.field(
    (256, 256), 'Layers of the network: those of TD3+BC, arXiv:2106.06860.'
  )
  image_torso: str = settings.field(
    'auto',
    "Convolutions for image leaves: 'nature', 'residual', 'data_efficient', "
    "'minatar' or, by the size of each, 'auto', see "
    'docs/environments.md.',
  )
  batch_size: int = settings.field(
    256, 'Items a learner step samples: as in TD3+BC.'
  )
  learning_rate: float = settings.field(
    3e-4, 'Step size of Adam: as in TD3+BC.'
  )
  adam_epsilon: float = settings.field(
    1e-8, "Added to Adam's denominator: its authors', arXiv:1412.6980."
  )
  max_gradient_norm: float | None = settings.field(
    None, 'Global norm at which gradients are clipped; None for no limit.'
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check_one_of(self, 'image_torso', choices.IMAGE_TORSOS)
    config_checks.check_positive(self, 'adam_epsilon', 'max_gradient_norm')


PRESETS: dict[str, dict[str, Any]] = {}
