"""Tests of weighted sampling inside a program, against cumulative sums."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from repertory.components.anakin import replay_transport

_NUM_SET, _NUM_RUNS, _RUN, _NUM_DRAWN = 7, 2, 5, 40


@functools.cache
def _compiled(size, jit_compile=False):
  """Returns a tree that tests share, and its compiled methods."""
  tree = replay_transport.TensorSumTree(size)
  length = min(_RUN, size)

  def compile_method(method):
    return tf.function(method, autograph=False, jit_compile=jit_compile)

  return (
    tree,
    compile_method(tree.set),
    compile_method(lambda *args: tree.set_runs(args[0], length, args[1])),
    compile_method(tree.draw),
  )


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


@pytest.mark.parametrize(
  ('size', 'jit_compile'),
  [(1, False), (32, False), (33, False), (1025, True)],
)
def test_equals_a_search_from_the_first_on(size, jit_compile):
  random = np.random.default_rng(size)
  # Partial node, full node, one more than that, and three levels.
  tree, set_weights, set_runs, draw = _compiled(size, jit_compile)
  weights, num_compared = np.zeros(size), 0
  tree.set(tf.range(size), tf.constant(weights))
  for _ in range(12):
    # Integers, whose sums are exact; an index may be repeated, with the same
    # weight.
    values = random.integers(0, 4, size).astype(np.float64)
    places = random.integers(size, size=_NUM_SET)
    set_weights(tf.constant(places, tf.int32), tf.constant(values[places]))
    weights[places] = values[places]
    length = min(_RUN, size)
    starts = random.integers(size - length + 1, size=_NUM_RUNS)
    runs = np.stack([values[start : start + length] for start in starts])
    set_runs(tf.constant(starts, tf.int32), tf.constant(runs))
    for start, run in zip(starts, runs):
      weights[start : start + length] = run
    np.testing.assert_array_equal(tree.leaves[:size], weights)
    total = weights.sum()
    assert tree.total().numpy() == total
    if total:
      uniforms = random.random(_NUM_DRAWN)
      uniforms[:2] = 0.0, 1 - 2**-48
      found = draw(tf.constant(uniforms)).numpy()
      assert found.tolist() == _find(weights, uniforms)
      num_compared += 1
  assert num_compared > 5


def test_a_run_may_reach_over_the_nodes_of_two_levels():
  """A run that ends at the last item, of nodes 31 and 32 of the first level."""
  size = 1025
  tree, weights = replay_transport.TensorSumTree(size), np.zeros(size)
  weights[size - 70 :] = np.arange(1, 71)
  tree.set_runs(tf.constant([size - 70]), 70, tf.constant([weights[-70:]]))
  assert tree.total().numpy() == 70 * 71 / 2
  uniforms = np.linspace(0, 1, 100, endpoint=False)
  found = tree.draw(tf.constant(uniforms)).numpy()
  assert found.tolist() == _find(weights, uniforms)


@pytest.mark.parametrize(('size', 'jit_compile'), [(33, False), (1025, True)])
def test_zero_weights_are_never_sampled(size, jit_compile):
  """Not even if rounding ends next to an item or after the last one."""
  random = np.random.default_rng(size)
  tree, _, _, draw = _compiled(size, jit_compile)
  for _ in range(40):
    weights = random.random(size) * 10.0 ** random.integers(-9, 9, size)
    weights *= random.random(size) < random.choice([0.02, 0.3])
    weights[random.integers(size)] = 1.0
    tree.set(tf.range(size), tf.constant(weights))
    sums = np.cumsum(weights) / weights.sum()
    edges = random.choice(np.append(sums, [0.0, 1.0]), _NUM_DRAWN)
    edges[::3] = np.nextafter(edges[::3], 2)
    edges[1::3] = np.nextafter(edges[1::3], -1)
    places = draw(tf.constant(np.clip(edges, 0, 1 - 2**-53))).numpy()
    assert (weights[places] > 0).all()
