"""Tests of `agents/dqn/networks.py`."""

import re

import numpy as np
import pytest
import tensorflow as tf
from acme import specs

from repertory.agents import dqn

FLOAT = specs.Array((), np.float32)
VECTOR = specs.Array((3,), np.float32)


def make_spec(observations=VECTOR, actions=None):
  if actions is None:
    actions = specs.DiscreteArray(4)
  return specs.EnvironmentSpec(observations, actions, FLOAT, FLOAT)


def make_network(spec, **config):
  return dqn.DQNBuilder(dqn.DQNConfig(**config)).make_network(spec)


_CONTINUOUS = specs.BoundedArray((2,), np.float32, -1, 1)


@pytest.mark.parametrize(
  ('actions', 'name'),
  [
    (_CONTINUOUS, 'actions'),
    ({'move': specs.DiscreteArray(4), 'turn': _CONTINUOUS}, "actions['turn']"),
  ],
)
def test_refuses_continuous_actions(actions, name):
  refused = (
    f'{name} must be a DiscreteArray or an array of integers with bounds'
  )
  with pytest.raises(ValueError, match=re.escape(refused)) as caught:
    make_network(make_spec(actions=actions))
  assert repr(_CONTINUOUS) in str(caught.value)


@pytest.mark.parametrize(
  ('image_torso', 'first_kernel', 'size'),
  [
    # ((36 − 8) / 4 + 1 − 4) / 2 + 1 − 3 + 1 = 1 pixel of 64 channels.
    ('nature', 8, 1 * 1 * 64),
    # 36, 18, 9, 5: 32 channels.
    ('residual', 3, 5 * 5 * 32),
  ],
)
def test_images(image_torso, first_kernel, size):
  image = specs.BoundedArray((36, 36, 2), np.uint8, 0, 255)
  network = make_network(
    make_spec({'x': VECTOR, 'eye': image}),
    image_torso=image_torso,
    hidden_sizes=(8,),
  )
  shapes = {v.name: tuple(v.shape) for v in network.variables}
  assert shapes['observation_torso/mlp/linear_0/w:0'] == (size + 3, 8)
  (first,) = [v for v in network.variables if v.shape[2:3] == [2]]
  assert first.shape[:2] == [first_kernel, first_kernel]
  random = np.random.default_rng(0)
  pixels = random.integers(0, 256, [5, 36, 36, 2]).astype(np.uint8)
  values = network({'x': tf.zeros([5, 3]), 'eye': tf.constant(pixels)})
  assert values.shape == [5, 4]
  # The rows differ by their images alone.
  assert len(np.unique(values, axis=0)) == 5


def test_rejects_videos():
  video = specs.BoundedArray((4, 84, 84, 3), np.uint8, 0, 255)
  message = r'Leaf eye of the observation must .*\(4, 84, 84, 3\).*a custom net'
  with pytest.raises(ValueError, match=message):
    make_network(make_spec({'x': VECTOR, 'eye': video}))
