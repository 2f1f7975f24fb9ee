"""Tests of `kl` of every distribution."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import distributions, specs

GRIP = specs.DiscreteArray(3, np.int64)
# Two choices, and three.
DIALS = specs.BoundedArray((2,), np.int32, [0, 1], [1, 3])
FORCE = specs.BoundedArray((2,), np.float32, [-1, 0], [1, 4])
NEST = {'grip': GRIP, 'force': FORCE, 'dials': DIALS}


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
@pytest.mark.parametrize('leading', [[4], [3, 4]])
def test_kl(name, leading):
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
