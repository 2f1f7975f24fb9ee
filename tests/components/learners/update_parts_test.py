"""Tests of `components/learners/update_parts.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import learners


def _copy_variables(source, target):
  """Resumes a part from the variables of another one."""
  for one, other in zip(source.variables, target.variables, strict=True):
    assert not one.trainable
    other.assign(one)


class TestAnnealing:
  def test_linear(self):
    annealing = learners.LinearAnnealing(4)
    shares = [annealing().numpy() for _ in range(6)]
    np.testing.assert_array_equal(shares, [1, 0.75, 0.5, 0.25, 0, 0])
    assert shares[0].dtype == np.float32

  def test_cosine(self):
    annealing = learners.CosineAnnealing(4)
    shares = [annealing().numpy() for _ in range(6)]
    # ½ (1 + cos(π t / 4)): 45 degrees have a cosine of √½.
    root = 0.5**0.5
    expected = [1, (1 + root) / 2, 0.5, (1 - root) / 2, 0, 0]
    np.testing.assert_allclose(shares, expected, atol=1e-6)

  def test_without_a_number_of_calls_it_stays_1(self):
    for kind in (learners.LinearAnnealing, learners.CosineAnnealing):
      annealing = kind(None)
      assert [annealing().numpy() for _ in range(2)] == [1, 1]


class TestDelayedUpdate:
  def make(self, period):
    """Adds its argument to a variable, in every `period`-th call."""
    total = tf.Variable(1.0)
    update = learners.DelayedUpdate(
      lambda x: {'after': total.assign_add(x)}, ['after'], period
    )
    return total, update

  def test_is_made_at_every_multiple_of_the_period(self):
    total, update = self.make(3)
    call = tf.function(update, jit_compile=True, autograph=False)
    totals, found = [], []
    for i in range(1, 8):
      found.append(float(call(tf.constant(10.0 * i))['after']))
      totals.append(float(total))
    # 1 + 30 in the third call, and 60 more in the sixth.
    assert totals == [1, 1, 31, 31, 31, 91, 91]
    assert found == [0, 0, 31, 31, 31, 91, 91]
    assert sorted(float(v) for v in update.variables) == [7, 91]
    assert not update.trainable_variables


class TestUpdateNoise:
  def make(self, seed):
    tf.random.set_seed(seed)
    return learners.UpdateNoise()

  def test_follows_the_seed_and_counts_its_calls(self):
    first, same, other = self.make(1), self.make(1), self.make(2)
    drawn = np.zeros([9])
    for call in range(2):
      drawn = first.normals([9])
      seed = same.seed()
      np.testing.assert_array_equal(seed, [same._seed.numpy(), call])
      np.testing.assert_array_equal(
        drawn, tf.random.stateless_normal([9], seed)
      )
    assert np.abs(drawn - other.normals([9])).min() > 0
    _copy_variables(first, other)
    np.testing.assert_array_equal(first.uniforms([9]), other.uniforms([9]))


class TestDualVariable:
  @pytest.mark.parametrize('value', [1e-6, 1_000.0])
  def test_begins_with(self, value):
    dual = learners.DualVariable(value, [3], 'alpha')
    np.testing.assert_allclose(dual(), [value] * 3, rtol=0.02)
    (variable,) = dual.trainable_variables
    assert variable.name == 'alpha:0'

  def test_is_positive_and_limited(self):
    dual = learners.DualVariable(1.0, [], 'temperature')
    before = dual._raw.numpy()
    dual.limit()
    assert dual._raw == before
    dual._raw.assign(-1e6)
    assert 0 < dual() <= 1.1e-8
    dual.limit()
    assert dual._raw == -18
    # log(1 + exp(−18)) and the minimum.
    np.testing.assert_allclose(dual(), 1.523e-8 + 1e-8, rtol=1e-3)


class TestRunningScale:
  def test_is_the_deviation_of_all_numbers_in_the_mask(self):
    random = np.random.default_rng(0)
    scale, seen = learners.RunningScale(), []
    np.testing.assert_allclose(scale(), 1, rtol=1e-6)
    update = tf.function(scale.update, jit_compile=True, autograph=False)
    for _ in range(3):
      returns = random.normal(random.normal() * 50, 7, [6, 4])
      returns = returns.astype(np.float32)
      mask = random.uniform(size=[6, 4]) < 0.7
      seen.append(returns[mask])
      returns[~mask] = np.nan
      update(tf.constant(returns), tf.constant(mask))
      deviation = np.concatenate(seen).astype(np.float64).std()
      np.testing.assert_allclose(scale(), deviation, rtol=1e-6)
    assert scale().dtype == tf.float32
    assert len(scale.variables) == 3
    assert not scale.trainable_variables

  def test_of_equal_numbers_is_above_0(self):
    scale = learners.RunningScale()
    scale.update(tf.fill([3, 2], 4.0), tf.ones([3, 2], tf.bool))
    np.testing.assert_allclose(scale(), 1e-4, rtol=1e-6)


class TestTargets:
  def make(self, kind, setting):
    source = [tf.Variable([4.0, 8.0]), tf.Variable(12.0)]
    target = [tf.Variable([-1.0, -2.0]), tf.Variable(-3.0)]
    update = kind(source, target, setting)
    # They are equal at first.
    assert [t.numpy().tolist() for t in target] == [[4, 8], 12]
    return source, target, update

  def test_periodic_copy(self):
    source, target, copy = self.make(learners.PeriodicCopy, 3)
    call = tf.function(copy, jit_compile=True, autograph=False)
    seen = []
    for i in range(8):
      for variable in source:
        variable.assign(tf.fill(variable.shape, float(i)))
      call()
      seen.append(int(target[1].numpy()))
    assert seen == [12, 12, 2, 2, 2, 5, 5, 5]
    assert target[0].numpy().tolist() == [5, 5]
    (count,) = [v for v in copy.variables if v.dtype == tf.int64]
    assert count.numpy() == 8
    assert not count.trainable

  def test_period_of_1_copies_in_every_call(self):
    source, target, copy = self.make(learners.PeriodicCopy, 1)
    source[1].assign(5.0)
    copy()
    assert target[1].numpy() == 5

  def test_soft_update(self):
    source, target, update = self.make(learners.SoftUpdate, 0.25)
    source[0].assign([0.0, 16.0])
    source[1].assign(0.0)
    call = tf.function(update, jit_compile=True, autograph=False)
    for expected in ([[3, 10], 9], [[2.25, 11.5], 6.75]):
      call()
      assert [t.numpy().tolist() for t in target] == expected

  def test_variables_must_fit(self):
    source = [tf.Variable([0.0, 0.0])]
    for target in ([], [tf.Variable(0.0)]):
      with pytest.raises(ValueError, match=r'shorter|[Ss]hape'):
        learners.PeriodicCopy(source, target, 1)
