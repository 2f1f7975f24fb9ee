"""The settings of what wraps an agent."""

import dataclasses

from repertory.agents import config_checks

# What identities and flags call the wrapping, and before the names of its
# settings, with a dot.
WRAP = 'wrap'


@dataclasses.dataclass(frozen=True)
class WrapConfig:
  """Settings of a wrapping builder: a frozen dataclass that checks itself.

  All fields go into the checkpoint, and a run is resumed only if they are the
  same, as with an agent's.
  """

  def __post_init__(self):
    config_checks.check_types(self)
