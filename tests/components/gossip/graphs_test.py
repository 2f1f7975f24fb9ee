"""Tests of `components/gossip/graphs.py`."""

import pytest

from repertory.components.config import choices
from repertory.components.gossip import graphs


def test_who_hears_from_whom():
  assert graphs.in_neighbors('ring', 4, 0) == [3]
  assert graphs.out_neighbors('ring', 4, 3) == [0]
  assert graphs.in_neighbors('exponential', 8, 2) == [1, 0, 6]
  assert graphs.in_neighbors('exponential', 6, 0) == [5, 4, 2]
  assert graphs.in_neighbors('complete', 4, 1) == [0, 3, 2]


@pytest.mark.parametrize('graph', choices.GRAPHS)
def test_one_alone_has_no_neighbors(graph):
  assert graphs.in_neighbors(graph, 1, 0) == []
  assert graphs.neighbor_weight(graph, 1, None) == 0.0


def test_weights_by_hand():
  assert graphs.neighbor_weight('ring', 3, None) == 1 / 2
  assert graphs.neighbor_weight('complete', 5, None) == 1 / 5
  assert graphs.neighbor_weight('complete', 5, 0.2) == 0.05


def test_unknown_graph_is_refused():
  with pytest.raises(ValueError, match=r"graph must be one of ring.*'star'"):
    graphs.in_neighbors('star', 4, 0)
