"""Base class of configs of reward models."""

import dataclasses

from repertory.agents.interface import config_checks

# Name in flags and run identities; settings have it as a prefix, with a dot.
WRAP = 'wrap'


@dataclasses.dataclass(frozen=True)
class WrapConfig:
  """Config of a reward model: a frozen dataclass that validates itself.

  All fields are saved in checkpoints; a run resumes only if they are unchanged,
  as for agents.
  """

  def __post_init__(self):
    config_checks.check_types(self)
