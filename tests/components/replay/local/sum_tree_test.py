"""Tests of weighted sampling, against cumulative sums."""

import numpy as np
import pytest

from repertory.components.replay.local import sum_tree


def _find(weights, uniforms):
  """Returns the first index with cumulative sum greater than u · total."""
  found, total = [], sum(weights)
  for u in uniforms:
    upto, place = weights[0], 0
    while upto <= u * total:
      place += 1
      upto += weights[place]
    found.append(place)
  return found


# One block, one group, and several; the first one full.
@pytest.mark.parametrize('size', [1, 8, 9, 64, 65, 512, 513, 1500])
def test_equals_a_search_from_the_first_on(size):
  random = np.random.default_rng(size)
  tree, weights = sum_tree.SumTree(size), np.zeros(size)
  for _ in range(20):
    # Integers, whose sums are exact. Some indices are repeated.
    places = random.integers(size, size=17)
    values = random.integers(0, 4, 17).astype(float)
    tree.set(places, values)
    for place, value in zip(places, values):
      weights[place] = value
    start = int(random.integers(size))
    stretch = random.integers(0, 4, min(11, size - start)).astype(float)
    tree.set(np.arange(start, start + len(stretch)), stretch)
    weights[start : start + len(stretch)] = stretch
    if weights.sum() == 0:
      continue
    uniforms = random.random(50)
    found, probabilities = tree.draw(uniforms)
    assert found.tolist() == _find(weights, uniforms)
    np.testing.assert_array_equal(probabilities, weights[found] / weights.sum())


def test_no_error_builds_up():
  """After many changes, sums are those of a new tree."""
  random = np.random.default_rng(0)
  changed, new = sum_tree.SumTree(3000), sum_tree.SumTree(3000)
  weights = np.zeros(3000)
  for scale in (1e12, 1e-12, 1.0):
    for _ in range(30):
      places = random.integers(3000, size=100)
      weights[places] = values = random.random(100) * scale
      changed.set(places, values)
      assert changed.total > 0
  new.set(np.arange(3000), weights)
  assert changed.total == new.total
  uniforms = random.random(1000)
  for found, expected in zip(changed.draw(uniforms), new.draw(uniforms)):
    np.testing.assert_array_equal(found, expected)


def test_zero_weights_are_never_sampled():
  """Not even if rounding ends at the last index of a row."""
  random = np.random.default_rng(1)
  for _ in range(200):
    size = int(random.integers(1, 700))
    weights = random.random(size) * 10.0 ** random.integers(-9, 9, size)
    weights *= random.random(size) < 0.3
    if not weights.any():
      continue
    tree = sum_tree.SumTree(size)
    tree.set(np.arange(size), weights)
    edges = np.cumsum(weights) / weights.sum()
    near = [np.nextafter(edges, side) for side in (-1, 2)]
    uniforms = np.clip(np.concatenate([edges, *near]), 0, 1 - 2**-53)
    places, probabilities = tree.draw(uniforms)
    assert (weights[places] > 0).all()
    assert (probabilities > 0).all()
