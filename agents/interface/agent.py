"""Agent metadata that is available without importing TensorFlow."""

import dataclasses
import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from repertory.agents.interface import builder


@dataclasses.dataclass(frozen=True)
class Agent:
  """Metadata of a baseline or custom agent.

  Attributes:
    name: Value of `--agent`.
    description: One-line summary.
    config_class: Subclass of `AgentConfig`; baseline agents have a default for
      each setting.
    presets: Settings for kinds of environments, by name.
    builder: Import path of the builder's class, 'package.module:Builder'.
  """

  name: str
  description: str
  config_class: type
  presets: Mapping[str, Mapping[str, Any]]
  builder: str

  @property
  def builder_class(self) -> 'type[builder.Builder]':
    """The builder's class, whose argument is the config; imports TensorFlow."""
    return pkgutil.resolve_name(self.builder)
