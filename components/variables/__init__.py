"""Variables on their way from learners to actors."""

from repertory.components.variables.client import VariableClient

__all__ = ['VariableClient']
