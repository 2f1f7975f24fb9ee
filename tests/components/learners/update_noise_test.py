"""Tests of `components/learners/update_noise.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import learners


def make(seed):
  tf.random.set_seed(seed)
  return learners.UpdateNoise()


@pytest.mark.parametrize('jit_compile', [None, False, True])
def test_is_normal_and_new_in_every_call(jit_compile):
  noise = make(0)

  def draw():
    return noise.normals([50, 100])

  if jit_compile is not None:
    draw = tf.function(draw, autograph=False, jit_compile=jit_compile)
  drawn = np.stack([draw() for _ in range(4)])
  assert drawn.dtype == np.float32
  assert abs(drawn.mean()) < 4.5 / np.sqrt(drawn.size)
  assert abs(drawn.std() - 1) < 4.5 / np.sqrt(2 * drawn.size)
  correlations = np.corrcoef(drawn.reshape(4, -1)) - np.eye(4)
  assert np.abs(correlations).max() < 4.5 / np.sqrt(5000)


def test_follows_the_seed():
  first, same, other = make(1), make(1), make(2)
  drawn = first.normals([9])
  np.testing.assert_array_equal(drawn, same.normals([9]))
  assert np.abs(drawn - other.normals([9])).min() > 0


def test_resumes_from_its_variables():
  first, other = make(1), make(2)
  first.normals([9])
  for source, target in zip(first.variables, other.variables):
    assert not source.trainable
    target.assign(source)
  np.testing.assert_array_equal(first.normals([9]), other.normals([9]))


@pytest.mark.parametrize('jit_compile', [None, False, True])
def test_seeds_count_their_calls(jit_compile):
  noise = make(1)

  draw = noise.seed
  if jit_compile is not None:
    draw = tf.function(draw, autograph=False, jit_compile=jit_compile)
  for call in range(3):
    seed = draw()
    assert seed.dtype == tf.int32
    np.testing.assert_array_equal(seed, [noise._seed.numpy(), call])


def test_numbers_are_those_of_the_next_seed():
  noise, same = make(1), make(1)
  for _ in range(2):
    np.testing.assert_array_equal(
      noise.normals([9]), tf.random.stateless_normal([9], same.seed())
    )
  assert noise.seed()[1] == 2
