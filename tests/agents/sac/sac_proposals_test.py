"""Tests of `agents/sac/proposals.py`."""

import math

import numpy as np
import tensorflow as tf

from repertory.agents.sac import proposals
from repertory.components import learners
from repertory.components.distributions import squashed_gaussian


def test_kinds_and_densities():
  # Means 0 and 1 in the two states; of a single number, deviations of 1.
  distribution = squashed_gaussian.SquashedGaussian(1)
  here, there = (tf.constant([[mean, 0.0]] * 2) for mean in (0.0, 1.0))
  drawn = proposals.propose(
    (here, there), distribution.sample, learners.UpdateNoise(), 4_000, 1
  )
  assert drawn.action.shape == (2, 12_000, 1)
  assert drawn.log_prob.shape == (2, 12_000)
  uniform, *policies = tf.split(drawn.action, 3, axis=1)
  np.testing.assert_allclose(drawn.log_prob[:, :4_000], -math.log(2))
  # A uniform number's mean square is 1/3, with a deviation of 0.3 / √4,000.
  assert np.abs(np.mean(uniform**2, axis=1) - 1 / 3).max() < 0.02
  for i, mean in enumerate((0.0, 1.0)):
    u = np.arctanh(np.clip(policies[i][0, :, 0], -1 + 1e-6, 1 - 1e-6))
    assert abs(np.mean(u) - mean) < 0.07
    density = -((u - mean) ** 2) / 2 - math.log(2 * math.pi) / 2
    expected = density - np.log(1 - np.tanh(u) ** 2)
    found = drawn.log_prob[0, 4_000 * (i + 1) : 4_000 * (i + 2)]
    # Where tanh rounds to ±1, u cannot be recovered.
    is_inside = np.abs(u) < 3
    np.testing.assert_allclose(
      found[is_inside], expected[is_inside], rtol=1e-2, atol=1e-2
    )
