"""Variable clients, which update actors with the learner's variables."""

from repertory.components.variables.copied import CopiedVariables
from repertory.components.variables.fetched import FetchedVariables
from repertory.components.variables.followed import FollowedVariables
from repertory.components.variables.published import (
  PublishedVariables,
  Publisher,
)
from repertory.components.variables.scheduled import ScheduledVariables
from repertory.components.variables.shared import SharedVariables, Versioned

__all__ = [
  'CopiedVariables',
  'FetchedVariables',
  'FollowedVariables',
  'PublishedVariables',
  'Publisher',
  'ScheduledVariables',
  'SharedVariables',
  'Versioned',
]
