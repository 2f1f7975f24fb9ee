"""Tests of `components/losses/recurrence.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components.losses import recurrence


def slow_sums(terms, decays):
  """y_s = Σ_{t≥s} (Π_{s≤i<t} a_i) x_t, the recurrence written out."""
  sums = np.zeros_like(terms)
  for s in range(len(terms)):
    for t in range(s, len(terms)):
      product = np.ones_like(terms[0])
      for i in range(s, t):
        product = product * decays[i]
      sums[s] += product * terms[t]
  return sums


def test_by_hand():
  sums = recurrence.backward_recurrence(
    tf.constant([1.0, 2.0, 3.0]), tf.constant([0.5, 0.25, 8.0])
  )
  # The last decay has nothing behind it.
  last = 3
  middle = 2 + 0.25 * last
  expected = [1 + 0.5 * middle, middle, last]
  np.testing.assert_allclose(sums, expected, rtol=1e-6)


# Powers of two, their neighbors, and a length of one.
@pytest.mark.parametrize('length', [1, 2, 3, 4, 5, 8, 9, 20, 31, 32, 33])
@pytest.mark.parametrize('rest', [(), (3,), (2, 3)])
def test_equals_the_written_out_sum(length, rest):
  random = np.random.default_rng(length)
  terms = random.normal(size=(length, *rest))
  decays = random.uniform(-1.2, 1.2, size=(length, *rest))
  decays[random.uniform(size=decays.shape) < 0.1] = 0
  sums = recurrence.backward_recurrence(tf.constant(terms), tf.constant(decays))
  assert sums.shape == terms.shape
  np.testing.assert_allclose(
    sums, slow_sums(terms, decays), rtol=1e-10, atol=1e-12
  )


def test_without_decay_counts_what_follows():
  sums = recurrence.backward_recurrence(tf.ones([33, 2]), tf.ones([33, 2]))
  expected = np.repeat(np.arange(33, 0, -1)[:, None], 2, axis=1)
  np.testing.assert_array_equal(sums, expected)


def test_nothing_crosses_a_decay_of_zero():
  terms = np.random.default_rng(0).normal(size=[20, 2])
  decays = np.full([20, 2], 0.9)
  decays[7] = 0
  changed = terms.copy()
  changed[8:] += 1e6
  before, after = (
    recurrence.backward_recurrence(tf.constant(x), tf.constant(decays)).numpy()
    for x in (terms, changed)
  )
  np.testing.assert_array_equal(before[:8], after[:8])
  assert np.all(before[8:] != after[8:])


def test_arguments_stay_as_they_are():
  terms = tf.Variable([1.0, 2.0, 3.0])
  decays = tf.Variable([0.5, 0.5, 0.5])
  recurrence.backward_recurrence(
    tf.convert_to_tensor(terms), decays.read_value()
  )
  assert terms.numpy().tolist() == [1, 2, 3]
  assert decays.numpy().tolist() == [0.5] * 3


def test_compiled_equals_eager():
  random = np.random.default_rng(1)
  terms = tf.constant(random.normal(size=[33, 3]))
  decays = tf.constant(random.uniform(size=[33, 3]))
  compiled = tf.function(
    recurrence.backward_recurrence, jit_compile=True, autograph=False
  )
  np.testing.assert_allclose(
    compiled(terms, decays),
    recurrence.backward_recurrence(terms, decays),
    rtol=1e-12,
  )


def test_unknown_length_is_refused():
  spec = tf.TensorSpec([None, 2], tf.float32)
  traced = tf.function(
    recurrence.backward_recurrence,
    input_signature=[spec, spec],
    autograph=False,
  )
  with pytest.raises(ValueError, match='terms must have a known length'):
    traced(tf.ones([3, 2]), tf.ones([3, 2]))
