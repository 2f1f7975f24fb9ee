"""Checks of parts, as tests that your own ones inherit.

    class TestMyPolicy(conformance.PolicyConformance):
      def make_policy(self): ...

pytest, or unittest with `unittest.TestCase` as a further base, runs them.
"""

from repertory.components.conformance.policies import PolicyConformance
from repertory.components.conformance.roads import RoadConformance
from repertory.components.conformance.updates import UpdateConformance
from repertory.components.conformance.variables import (
  FollowedVariablesConformance,
  PretendedLearner,
)
from repertory.components.conformance.writers import (
  ServedTable,
  WriterConformance,
)

__all__ = [
  'FollowedVariablesConformance',
  'PolicyConformance',
  'PretendedLearner',
  'RoadConformance',
  'ServedTable',
  'UpdateConformance',
  'WriterConformance',
]
