"""Tests of factored distributions and of `make_distribution`."""

import collections
import math

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.components import distributions, specs
from support.agents import numeric_gradients

GRIP = specs.DiscreteArray(3, np.int64)
DIALS = specs.BoundedArray((2,), np.int32, [0, 1], [1, 3])
FORCE = specs.BoundedArray((2,), np.float32, [-1, 0], [1, 4])
Pair = collections.namedtuple('Pair', ['grip', 'force'])
# In the order of their keys, which is not the one here.
NEST = {'grip': GRIP, 'force': FORCE, 'dials': DIALS}
NESTS = {
  'dict': NEST,
  'tuple': (GRIP, DIALS, FORCE),
  'list': [GRIP, FORCE],
  'named_tuple': Pair(GRIP, FORCE),
  'deep': {'arms': ({'grip': GRIP}, {'grip': GRIP}), 'force': FORCE},
  'one': {'grip': GRIP},
}


def normal(*shape, seed=0):
  return tf.constant(np.random.default_rng(seed).normal(size=shape), tf.float32)


def counters_of(num_rows):
  random = np.random.default_rng(0)
  return tf.constant(random.integers(2**63, size=num_rows, dtype=np.uint64))


def test_by_hand():
  distribution = distributions.make_distribution(NEST)
  assert distribution.num_parameters == (2 + 3) + 4 + 3
  # Sorted: dials, force, grip. Deviations are 1/2 + 10⁻³.
  parameters = np.zeros([1, 12], np.float32)
  parameters[0, 0:2] = np.log([1, 3])
  parameters[0, 5:7] = [0.5, -1.0]
  parameters[0, 9:] = np.log([1, 1, 2])
  sample = {
    'grip': tf.constant([2]),
    'force': tf.constant([[0.5, -0.5]]),
    'dials': tf.constant([[1, 0]]),
  }
  scale = 0.501
  expected = (
    math.log(3 / 4) + math.log(1 / 3)  # The dials.
    - 2 * math.log(scale * math.sqrt(2 * math.pi)) - 0.5 * (0.5 / scale) ** 2
    + math.log(2 / 4)  # The grip.
  )  # fmt: skip
  np.testing.assert_allclose(
    distribution.log_prob(tf.constant(parameters), sample),
    [expected],
    rtol=1e-5,
  )
  expected = (
    math.log(4) / 4 + 3 * math.log(4 / 3) / 4 + math.log(3)
    + math.log(2 * math.pi * math.e * scale**2)
    + 2 * math.log(4) / 4 + math.log(2) / 2
  )  # fmt: skip
  np.testing.assert_allclose(
    distribution.entropy(tf.constant(parameters)), [expected], rtol=1e-5
  )
  mode = distribution.mode(tf.constant(parameters))
  np.testing.assert_array_equal(mode['dials'], [[1, 0]])
  np.testing.assert_array_equal(mode['force'], [[0.5, -1.0]])
  np.testing.assert_array_equal(mode['grip'], [2])
  action = distribution.to_action(mode)
  np.testing.assert_array_equal(action['dials'], [[1, 1]])
  # 0 + 1 · 0.5, and 2 + 2 · −1.
  np.testing.assert_array_equal(action['force'], [[0.5, 0.0]])
  np.testing.assert_array_equal(action['grip'], [2])


@pytest.mark.parametrize('name', NESTS)
@pytest.mark.parametrize('leading', [[4], [3, 4]])
def test_adds_up_the_parts(name, leading):
  spec = NESTS[name]
  distribution = distributions.make_distribution(spec)
  parts = [distributions.make_distribution(s) for s in tree.flatten(spec)]
  parameters = normal(*leading, distribution.num_parameters)
  own = tf.split(parameters, [part.num_parameters for part in parts], axis=-1)
  samples = [
    tf.cast(
      tf.fill([*leading, *part.sample_spec.shape], 1), part.sample_spec.dtype
    )
    for part in parts
  ]
  sample = tree.unflatten_as(spec, samples)
  found = distribution.log_prob(parameters, sample)
  assert found.shape == leading
  np.testing.assert_allclose(
    found, sum(p.log_prob(*x) for p, *x in zip(parts, own, samples)), rtol=1e-5
  )
  found = distribution.entropy(parameters)
  assert found.shape == leading
  np.testing.assert_allclose(
    found, sum(p.entropy(x) for p, x in zip(parts, own)), rtol=1e-5
  )
  # As from replay, where lists are tuples.
  if isinstance(spec, list):
    np.testing.assert_array_equal(
      distribution.log_prob(parameters, tuple(samples)),
      distribution.log_prob(parameters, samples),
    )


@pytest.mark.parametrize('name', NESTS)
@pytest.mark.parametrize('jit_compile', [False, True])
def test_samples_are_those_of_the_parts_in_order(name, jit_compile):
  spec = NESTS[name]
  distribution = distributions.make_distribution(spec)
  parameters = normal(5, distribution.num_parameters)
  counters = counters_of(5)

  @tf.function(jit_compile=jit_compile, autograph=False)
  def draw(parameters, counters):
    sample, counters = distribution.sample(parameters, counters)
    return sample, distribution.to_action(sample), counters

  sample, action, after = draw(parameters, counters)
  tree.assert_same_structure(distribution.sample_spec, sample)
  tree.assert_same_structure(spec, action)
  parts = [distributions.make_distribution(s) for s in tree.flatten(spec)]
  own = tf.split(parameters, [part.num_parameters for part in parts], axis=-1)
  for part, x, found in zip(parts, own, tree.flatten(sample)):
    expected, counters = part.sample(x, counters)
    assert found.dtype == part.sample_spec.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5)
  np.testing.assert_array_equal(after, counters)
  for leaf, array in zip(tree.flatten(spec), tree.flatten(action)):
    assert array.dtype == leaf.dtype
    for row in array.numpy():
      leaf.validate(row)


def test_gradients():
  distribution = distributions.make_distribution({'d': DIALS, 'f': FORCE})
  random = np.random.default_rng(2)
  arrays = {'x': random.normal(size=[1, 9])}
  dials, force = np.array([1, 2]), np.array([0.4, -1.3])
  shift = math.log(math.expm1(0.5))

  def function(arrays):
    (x,) = arrays['x']
    total = 0.0
    for i, place, count in ((0, 0, 2), (1, 2, 3)):
      z = x[place : place + count]
      log_p = z - np.log(np.sum(np.exp(z)))
      total += log_p[dials[i]] - 2 * np.sum(np.exp(log_p) * log_p)
    mean, scale = x[5:7], np.log1p(np.exp(x[7:] + shift)) + 1e-3
    total += np.sum(-0.5 * ((force - mean) / scale) ** 2 - np.log(scale))
    return total + 2 * np.sum(np.log(scale))

  expected = numeric_gradients.gradients(function, arrays)['x']
  parameters = tf.constant(arrays['x'], tf.float32)
  sample = {
    'd': tf.constant(dials[None], tf.int32),
    'f': tf.constant(force[None], tf.float32),
  }
  with tf.GradientTape() as tape:
    tape.watch(parameters)
    value = distribution.log_prob(parameters, sample)
    value += 2 * distribution.entropy(parameters)
  np.testing.assert_allclose(
    tape.gradient(value, parameters), expected, rtol=1e-3, atol=1e-4
  )


class TestMakeDistribution:
  def test_kinds(self):
    for spec, kind in (
      (GRIP, distributions.Categorical),
      (DIALS, distributions.MultiCategorical),
      (specs.BoundedArray((), np.int32, 0, 3), distributions.MultiCategorical),
      (FORCE, distributions.DiagonalGaussian),
      (specs.Array((), np.float64), distributions.DiagonalGaussian),
      (NEST, distributions.Factored),
      ({'grip': GRIP}, distributions.Factored),
    ):
      assert type(distributions.make_distribution(spec)) is kind

  @pytest.mark.parametrize(
    'spec',
    [
      specs.Array((2,), np.int32),
      specs.BoundedArray((0,), np.int32, 0, 3),
      specs.Array((2,), np.bool_),
      specs.Array((0,), np.float32),
      specs.Array((2, 0), np.float32),
      'nothing',
    ],
  )
  def test_refuses_others(self, spec):
    with pytest.raises(ValueError, match=r'^actions must be a'):
      distributions.make_distribution(spec)
    with pytest.raises(ValueError, match=r"^actions\['hand'\]\[1\] must be a"):
      distributions.make_distribution({'hand': (GRIP, spec), 'arm': GRIP})

  @pytest.mark.parametrize('spec', [(), {}])
  def test_refuses_no_parts(self, spec):
    with pytest.raises(ValueError, match='must have at least one array'):
      distributions.make_distribution(spec)
