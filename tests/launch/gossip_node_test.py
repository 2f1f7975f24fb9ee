"""Tests of the mean of learners that the gossip node serves."""

import numpy as np
import pytest

from repertory.launch.nodes import gossip

_NAMES = ['actor_learner/0', 'actor_learner/1']


def _means(*names):
  return gossip.LearnerMean(names, lambda: [])


def test_steps_are_summed_over_learners():
  means = _means('a', 'b')
  for name, steps in (('a', 103), ('b', 4), ('a', 105), ('a', 100), ('a', 105)):
    means.count(name, steps)  # One report is late.
  assert means.steps == 105 + 4
  # Steps that a new generation repeats count.
  means.begin('b', 2)
  means.count('b', 5)
  assert means.steps == 105 + 4 + (5 - 2)


class TestMeans:
  def test_mean_by_hand(self):
    found = gossip.mean([
      {'x': np.array([1, 2], np.float32), 'n': np.array(3)},
      {'x': np.array([3, 6], np.float32), 'n': np.array(5)},
    ])  # fmt: skip
    np.testing.assert_array_equal(found['x'], np.array([2, 4], np.float32))
    assert found['x'].dtype == np.float32 and found['n'] == 5

  def test_variables_of_all(self):
    means = _means(*_NAMES)
    one, other = np.array([1.0]), np.array([5.0])
    assert means.reported() == {}
    means.update(_NAMES[0], {'policy/0000/w': one})
    means.update(_NAMES[1], {'policy/0000/w': other})
    (both,), steps = means.get_variables(['policy', 'learner_steps'])
    assert both == 3 and steps == 0
    assert means.distances() == dict.fromkeys(_NAMES, 2.0)
    with pytest.raises(KeyError, match=r"'critic'; there are \['policy'\]"):
      means.get_variables(['critic'])
