"""What is known of an agent before TensorFlow is imported."""

import dataclasses
import importlib
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from repertory.agents import builder


@dataclasses.dataclass(frozen=True)
class Agent:
  """A baseline agent, or one of the user's own.

  Attributes:
    name: What `--agent` takes.
    description: One line.
    config_class: Its settings, an `AgentConfig`; of a baseline agent each has a
      default.
    presets: Settings for kinds of environments, by name.
    builder: Where its builder's class is, such as 'package.module:Builder'.
  """

  name: str
  description: str
  config_class: type
  presets: Mapping[str, Mapping[str, Any]]
  builder: str

  @property
  def builder_class(self) -> 'type[builder.Builder]':
    """Is made from an instance of the config; imports TensorFlow."""
    module, _, path = self.builder.partition(':')
    return operator.attrgetter(path)(importlib.import_module(module))
