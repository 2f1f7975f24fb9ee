"""Tests of `previous_actions.py`, and of the networks that read them."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import networks, specs
from repertory.components.networks import previous_actions

MOVE = specs.DiscreteArray(3, np.int32)
DIALS = specs.BoundedArray((2,), np.int64, [5, -1], [6, 1])
FORCE = specs.BoundedArray((2, 1), np.float32, [[-2], [0]], [[2], [8]])
NUMBER = specs.Array((), np.float32)


def observing(action):
  """Spec with previous action and reward."""
  return {
    'observation': specs.BoundedArray((2,), np.int32, 0, 9),
    'previous_action': action,
    'previous_reward': NUMBER,
  }


@pytest.mark.parametrize(
  ('spec', 'action', 'expected'),
  [
    # One-hot of 2 and of 3.
    (DIALS, [[5, 1], [6, -1]], [[1, 0, 0, 0, 1], [0, 1, 1, 0, 0]]),
    # Padding is none of them.
    (DIALS, [[0, 0], [7, 2]], [[0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]),
    # x / 2, and (x − 4) / 4.
    (FORCE, [[[-2], [5]], [[1], [8]]], [[-1, 0.25], [0.5, 1]]),
    (NUMBER, [3.5, -7], [[3.5], [-7]]),
    (specs.BoundedArray((1,), np.float32, 3, 3), [[3], [3]], [[0], [0]]),
    (
      specs.BoundedArray((1,), np.float32, 0, np.inf),
      [[3], [1e3]],
      [[3], [1e3]],
    ),
  ],
)
def test_encode(spec, action, expected):
  leaf = tf.constant(np.array(action, spec.dtype))
  found = previous_actions.encode(leaf, spec)
  assert found.dtype == tf.float32
  np.testing.assert_allclose(found, expected)


def test_find():
  nest = {'move': MOVE, 'dials': DIALS, 'force': (FORCE,)}
  # Sorted: observation; dials, force and move; reward.
  assert previous_actions.find(observing(nest)) == [
    False, True, True, False, False,
  ]  # fmt: skip
  assert not any(previous_actions.find({'previous_action': DIALS}))
  assert previous_actions.find(DIALS) == [False]


def test_torso_encodes_the_action_alone():
  spec = observing({'dials': DIALS, 'force': FORCE, 'move': MOVE})
  torso = networks.ObservationTorso(spec, ())
  found = torso(
    {
      'observation': tf.constant([[7, 8]]),
      'previous_action': {
        'dials': tf.constant([[6, 0]], tf.int64),
        'force': tf.constant([[[1.0], [6.0]]]),
        'move': tf.constant([2]),
      },
      'previous_reward': tf.constant([0.25]),
    }
  )
  expected = [7, 8, 0, 1, 0, 1, 0, 0.5, 0.5, 0, 0, 1, 0.25]
  np.testing.assert_allclose(found, [expected])


def test_actions_of_three_axes_are_no_images():
  spec = observing(specs.BoundedArray((1, 2, 1), np.float32, -1, 1))
  networks.check_observation(spec)
  torso = networks.ObservationTorso(spec, ())
  found = torso(
    {
      'observation': tf.constant([[0, 0]]),
      'previous_action': tf.constant([[[[0.5], [-0.5]]]]),
      'previous_reward': tf.constant([0.0]),
    }
  )
  np.testing.assert_allclose(found, [[0, 0, 0.5, -0.5, 0]])


def test_normalizer_leaves_the_action_to_the_torso():
  spec = observing((DIALS, FORCE))
  normalizer = networks.ObservationNormalizer(spec)
  random = np.random.default_rng(0)
  observation = {
    'observation': tf.constant(random.integers(9, size=[4, 3, 2]), tf.int32),
    'previous_action': (
      tf.constant(random.integers(9, size=[4, 3, 2])),
      tf.constant(random.normal(size=[4, 3, 2, 1]), tf.float32),
    ),
    'previous_reward': tf.constant(random.normal(size=[4, 3]), tf.float32),
  }
  normalizer.update(observation, tf.ones([4, 3], tf.bool))
  rows = tf.nest.map_structure(lambda leaf: leaf[0], observation)
  found = normalizer(rows)
  for one, other in zip(found['previous_action'], rows['previous_action']):
    assert one is other
  assert np.all(found['previous_reward'] != rows['previous_reward'])
