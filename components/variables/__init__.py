"""Variables on their way from learners to actors."""

from repertory.components.variables.client import VariableClient
from repertory.components.variables.published import (
  PublishedVariables,
  Publisher,
)

__all__ = ['PublishedVariables', 'Publisher', 'VariableClient']
