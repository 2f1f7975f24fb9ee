"""Conformance tests of policies and updates, to inherit from.

  class TestMyPolicy(testing.PolicyConformance):
    def make_policy(self): ...

They run in pytest, or in unittest with `unittest.TestCase` as a further base.
"""

from repertory.components.testing.policies import PolicyConformance
from repertory.components.testing.updates import UpdateConformance

__all__ = ['PolicyConformance', 'UpdateConformance']
