"""Checks of updates that share one compiled update per case."""

import pytest

from repertory.components import testing


class StartedUpdates(testing.UpdateConformance):
  """Compiles the update of a case once, as its first batch takes seconds.

  Each test continues with its state after earlier ones; tests that need two
  copy it to a new one.
  """

  @pytest.fixture(scope='class', name='started')
  @classmethod
  def _started(cls):
    return {}

  @pytest.fixture(autouse=True)
  def _of_this_case(self, request, started):
    self._started_updates = started
    self._case = request.node.callspec.id

  def start(self):
    if self._case not in self._started_updates:
      self._started_updates[self._case] = super().start()
    return self._started_updates[self._case]
