"""Tests of `components/learners/annealing.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import learners


@pytest.mark.parametrize('jit_compile', [None, False, True])
def test_falls_to_0_and_stays(jit_compile):
  annealing = learners.LinearAnnealing(4)
  call = annealing
  if jit_compile is not None:
    call = tf.function(annealing, autograph=False, jit_compile=jit_compile)
  shares = [call().numpy() for _ in range(6)]
  np.testing.assert_array_equal(shares, [1, 0.75, 0.5, 0.25, 0, 0])
  assert shares[0].dtype == np.float32


def test_without_a_number_of_calls_it_stays_1():
  annealing = learners.LinearAnnealing(None)
  assert [annealing().numpy() for _ in range(3)] == [1, 1, 1]


def test_resumes_from_its_variables():
  first, other = (learners.LinearAnnealing(10) for _ in range(2))
  for _ in range(3):
    first()
  for source, target in zip(first.variables, other.variables, strict=True):
    assert not source.trainable
    target.assign(source)
  assert other().numpy() == np.float32(0.7)


@pytest.mark.parametrize('jit_compile', [None, True])
def test_falls_along_a_cosine(jit_compile):
  annealing = learners.CosineAnnealing(4)
  call = tf.function(annealing, autograph=False, jit_compile=jit_compile)
  shares = [call().numpy() for _ in range(6)]
  # ½ (1 + cos(π t / 4)): 45 degrees have a cosine of √½.
  root = 0.5**0.5
  expected = [1, (1 + root) / 2, 0.5, (1 - root) / 2, 0, 0]
  np.testing.assert_allclose(shares, expected, atol=1e-6)
  assert learners.CosineAnnealing(None)().numpy() == 1
