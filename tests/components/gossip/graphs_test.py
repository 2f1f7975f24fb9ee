"""Tests of `components/gossip/graphs.py`."""

import numpy as np
import pytest

from repertory.components.config import choices
from repertory.components.gossip import graphs

_SIZES = (1, 2, 5, 8)


def test_who_hears_from_whom():
  assert graphs.in_neighbors('ring', 4, 0) == [3]
  assert graphs.out_neighbors('ring', 4, 3) == [0]
  assert graphs.in_neighbors('exponential', 8, 2) == [1, 0, 6]
  assert graphs.in_neighbors('exponential', 6, 0) == [5, 4, 2]
  assert graphs.in_neighbors('complete', 4, 1) == [0, 3, 2]


@pytest.mark.parametrize('graph', choices.GRAPHS)
def test_one_alone_has_no_neighbors(graph):
  assert graphs.in_neighbors(graph, 1, 0) == []
  np.testing.assert_array_equal(graphs.mixing_matrix(graph, 1), [[1.0]])
  assert graphs.contraction(graph, 1) == 0.0


@pytest.mark.parametrize('graph', choices.GRAPHS)
@pytest.mark.parametrize('size', _SIZES)
def test_rows_and_columns_sum_to_one(graph, size):
  matrix = graphs.mixing_matrix(graph, size)
  assert (matrix >= 0).all()
  np.testing.assert_allclose(matrix.sum(0), 1)
  np.testing.assert_allclose(matrix.sum(1), 1)


def test_matrix_of_a_ring_by_hand():
  np.testing.assert_allclose(
    graphs.mixing_matrix('ring', 3),
    [[1 / 2, 0, 1 / 2], [1 / 2, 1 / 2, 0], [0, 1 / 2, 1 / 2]],
  )
  np.testing.assert_allclose(
    graphs.mixing_matrix('ring', 3, share=0.2),
    [[0.8, 0, 0.2], [0.2, 0.8, 0], [0, 0.2, 0.8]],
  )


@pytest.mark.parametrize('graph', choices.GRAPHS)
@pytest.mark.parametrize('size', _SIZES[1:])
def test_contraction_is_the_second_singular_value(graph, size):
  # Of the matrix minus the mean, by a different computation.
  matrix = graphs.mixing_matrix(graph, size, share=0.6)
  norm = np.linalg.norm(matrix - 1 / size, ord=2)
  assert graphs.contraction(graph, size, 0.6) == pytest.approx(norm, abs=1e-9)
  assert graphs.contraction(graph, size, 0.6) < 1


def test_unknown_graph_is_refused():
  with pytest.raises(ValueError, match=r"graph must be one of ring.*'star'"):
    graphs.in_neighbors('star', 4, 0)
