"""Conformance tests of components, to inherit from.

  class TestMyPolicy(conformance.PolicyConformance):
    def make_policy(self): ...

They run in pytest, or in unittest with `unittest.TestCase` as a further base.
"""

from repertory.components.conformance.policies import PolicyConformance
from repertory.components.conformance.transports import TransportConformance
from repertory.components.conformance.updates import UpdateConformance
from repertory.components.conformance.variables import (
  PretendedLearner,
  VariableClientConformance,
)
from repertory.components.conformance.writers import (
  ServedTable,
  WriterConformance,
)

__all__ = [
  'PolicyConformance',
  'PretendedLearner',
  'ServedTable',
  'TransportConformance',
  'UpdateConformance',
  'VariableClientConformance',
  'WriterConformance',
]
