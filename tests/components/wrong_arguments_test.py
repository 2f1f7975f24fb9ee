"""Tests of errors for wrong arguments of parts that users put together."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import learners, losses, networks, specs

_VECTOR = specs.Array((3,), np.float32)


@pytest.mark.parametrize(
  ('make', 'message'),
  [
    (
      lambda: networks.make_core('rnn', 4),
      "kind .*none, lstm, gru, gtrxl; got 'rnn'",
    ),
    (lambda: networks.make_trunk('mpl', (3,)), "kind .*mlp, .*; got 'mpl'"),
    (
      lambda: networks.ObservationTorso(_VECTOR, (), 'vgg'),
      "image_torso must be one of auto, nature, .*; got 'vgg'",
    ),
    (
      lambda: networks.ReturnNetwork(
        _VECTOR, 2, (3,), 'auto', implicit=True, num_outputs=2
      ),
      'num_outputs must be None if implicit, got 2',
    ),
    (lambda: losses.imitation_rewards(tf.zeros([1]), 'a'), 'one of gail, airl'),
    (lambda: learners.Divergence('stpo'), "action .*stop, skip; got 'stpo'"),
    (lambda: learners.PeriodicCopy([], [], 0), 'period .*at least 1, got 0'),
    (lambda: learners.DelayedUpdate(dict, [], 0), 'period .*at least 1, got 0'),
    (lambda: learners.SoftUpdate([], [], 1.1), r'rate .*in \(0, 1\], got 1.1'),
    (
      lambda: learners.GradientLearner(tf.Module(), iter([])),
      'element_spec must be given where the dataset has none, .*list_iterator',
    ),
  ],
)
def test_it_is_named(make, message):
  with pytest.raises(ValueError, match=message):
    make()
