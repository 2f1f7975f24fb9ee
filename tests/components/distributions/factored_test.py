"""Tests of factored distributions and of `make_distribution`."""

import collections
import math

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.components import distributions, specs

GRIP = specs.DiscreteArray(3, np.int64)
DIALS = specs.BoundedArray((2,), np.int32, [0, 1], [1, 3])
FORCE = specs.BoundedArray((2,), np.float32, [-1, 0], [1, 4])
Pair = collections.namedtuple('Pair', ['grip', 'force'])
# In the order of their keys, which is not the one here.
NEST = {'grip': GRIP, 'force': FORCE, 'dials': DIALS}
NESTS = {
  'named_tuple': Pair(GRIP, FORCE),
  'deep': {'arms': ({'grip': GRIP}, [GRIP]), 'force': FORCE, 'dials': DIALS},
}


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
def test_samples_are_those_of_the_parts_in_order(name):
  spec = NESTS[name]
  distribution = distributions.make_distribution(spec)
  random = np.random.default_rng(0)
  parameters = tf.constant(
    random.normal(size=[5, distribution.num_parameters]), tf.float32
  )
  counters = tf.constant(random.integers(2**63, size=5, dtype=np.uint64))

  @tf.function(autograph=False)
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
      specs.Array((2, 0), np.float32),
      'nothing',
    ],
  )
  def test_refuses_others(self, spec):
    with pytest.raises(ValueError, match=r'^actions must be a'):
      distributions.make_distribution(spec)
    with pytest.raises(ValueError, match=r"^actions\['hand'\]\[1\] must be a"):
      distributions.make_distribution({'hand': (GRIP, spec), 'arm': GRIP})

  def test_refuses_no_parts(self):
    with pytest.raises(ValueError, match='must have at least one array'):
      distributions.make_distribution({})


def logits(*rows):
  return np.log(np.concatenate(rows))


def divergence(p, q):
  return sum(x * math.log(x / y) for x, y in zip(p, q))


def scale_of(raw):
  return math.log1p(math.exp(raw) * math.expm1(0.5)) + 1e-3


def by_hand():
  """By name: actions, parameters of p and of q, and divergences."""
  thirds, skewed = [1 / 3] * 3, [0.1, 0.2, 0.7]
  coin, bent = [0.5, 0.5], [0.9, 0.1]
  grip = divergence(thirds, skewed)
  dials = divergence(coin, bent) + divergence(skewed, thirds)
  p, q = np.array([0.5, -1, 0.3, -0.4]), np.array([1.5, -1.2, -0.5, 0.8])
  moved = (1 / scale_of(0.3)) ** 2 / 2 + (0.2 / scale_of(-0.4)) ** 2 / 2
  ratios = [scale_of(a) / scale_of(b) for a, b in ((0.3, -0.5), (-0.4, 0.8))]
  stretched = sum((r**2 - 1) / 2 - math.log(r) for r in ratios)
  return {
    'grip': (GRIP, logits(thirds), logits(skewed), {'policy': grip}),
    'dials': (
      DIALS, logits(coin, skewed), logits(bent, thirds), {'policy': dials}
    ),
    'force': (FORCE, p, q, {'mean': moved, 'stddev': stretched}),
    'nest': (
      NEST,  # Sorted: dials, force, grip.
      np.concatenate([logits(coin, skewed), p, logits(thirds)]),
      np.concatenate([logits(bent, thirds), q, logits(skewed)]),
      {'policy': dials + grip, 'mean': moved, 'stddev': stretched},
    ),
  }  # fmt: skip


@pytest.mark.parametrize('name', by_hand())
def test_kl(name):
  leading = [3, 4]
  spec, p, q, expected = by_hand()[name]
  distribution = distributions.make_distribution(spec)
  p, q = (
    tf.constant(np.broadcast_to(x, [*leading, len(x)]), tf.float32)
    for x in (p, q)
  )
  found = distribution.kl(p, q)
  assert set(found) == set(expected) == set(distribution.kl_parts)
  for part, value in expected.items():
    assert found[part].shape == leading
    np.testing.assert_allclose(found[part], value, rtol=1e-4)
  for value in distribution.kl(p, p).values():
    np.testing.assert_allclose(value, 0, atol=1e-6)
