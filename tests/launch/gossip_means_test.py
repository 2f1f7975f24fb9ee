"""Tests of `launch/nodes/gossip_means.py`."""

from repertory.launch.nodes import gossip_means


def _means(*names):
  return gossip_means.SeveralLearners(names, lambda: [])


class TestSteps:
  def test_are_those_of_all(self):
    means = _means('a', 'b')
    means.count('a', 3)
    means.count('b', 4)
    means.count('a', 5)
    assert means.steps == 5 + 4

  def test_what_comes_late_counts_nothing_twice(self):
    means = _means('a')
    means.count('a', 105)
    means.count('a', 100)  # It was told before.
    means.count('a', 105)
    assert means.steps == 105

  def test_what_is_made_a_second_time_counts(self):
    means = _means('a')
    means.count('a', 10)
    means.begin('a', 6)
    means.count('a', 11)
    assert means.steps == 10 + (11 - 6)
