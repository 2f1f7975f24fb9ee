"""Conformance tests of components, to inherit from.

  class TestMyPolicy(conformance.PolicyConformance):
    def make_policy(self): ...

They run in pytest, or in unittest with `unittest.TestCase` as a further base.
"""

from repertory.components.testing.policies import PolicyConformance
from repertory.components.testing.transports import TransportConformance
from repertory.components.testing.updates import UpdateConformance
from repertory.components.testing.variables import (
  PretendedLearner,
  VariableClientConformance,
)
from repertory.components.testing.writers import ServedTable, WriterConformance

__all__ = [
  'PolicyConformance',
  'PretendedLearner',
  'ServedTable',
  'TransportConformance',
  'UpdateConformance',
  'VariableClientConformance',
  'WriterConformance',
]
