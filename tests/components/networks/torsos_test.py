"""Tests of `components/networks/torsos.py`."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from acme import specs
from dm_env import specs as dm_env_specs

from repertory.components import networks
from repertory.components.networks import torsos

B = 4


def make_nest():
  random = np.random.default_rng(0)
  return {
    'vector': random.normal(size=[B, 3]).astype(np.float32),
    'flag': np.array([True, False, False, True]),
    'inner': (
      random.integers(0, 255, size=[B, 2, 2]).astype(np.uint8),
      random.normal(size=[B]),
    ),
    'count': random.integers(-9, 9, size=[B]),
    'choice': np.array([2, 0, 1, 2], np.int32),
  }


SPEC = {
  'vector': specs.Array((3,), np.float32),
  'flag': specs.Array((), np.bool_),
  'inner': (specs.Array((2, 2), np.uint8), specs.Array((), np.float64)),
  # Bounded, but not discrete.
  'count': specs.BoundedArray((), np.int64, -9, 8),
  'choice': specs.DiscreteArray(3),
}


class TestObservationTorso:
  def test_nest_is_flattened_and_joined(self):
    nest = make_nest()
    torso = networks.ObservationTorso(SPEC, [])
    features = torso(tf.nest.map_structure(tf.constant, nest))
    assert features.dtype == tf.float32
    # Mappings are read in the order of their keys.
    leaves = [
      np.eye(3)[nest['choice']], nest['count'], nest['flag'], *nest['inner'],
      nest['vector'],
    ]  # fmt: skip
    expected = np.concatenate([leaf.reshape(B, -1) for leaf in leaves], 1)
    np.testing.assert_allclose(features, expected, rtol=1e-6)

  def test_discrete_is_one_hot(self):
    torso = networks.ObservationTorso(specs.DiscreteArray(3, np.int8), [])
    # Others are out of range.
    np.testing.assert_array_equal(
      torso(tf.constant([2, 0, 3, 127, 1, -128], tf.int8)),
      [[0, 0, 1], [1, 0, 0], [0] * 3, [0] * 3, [0, 1, 0], [0] * 3],
    )

  def test_kinds_of_nests(self):
    pair = collections.namedtuple('pair', ['y', 'x'])
    leaf = specs.Array((), np.float32)
    torso = networks.ObservationTorso([leaf, pair(leaf, {'k': leaf})], [])
    x = [tf.constant([float(i)]) for i in range(3)]
    np.testing.assert_array_equal(
      torso([x[0], pair(x[1], {'k': x[2]})]), [[0, 1, 2]]
    )
    # Sequences may turn into tuples on their way through replay.
    np.testing.assert_array_equal(
      torso((x[0], pair(x[1], {'k': x[2]}))), [[0, 1, 2]]
    )


class TestImages:
  def test_each_goes_through_a_torso_of_its_own(self):
    image = specs.BoundedArray((5, 6, 2), np.uint8, 0, 255)
    spec = {'left': image, 'middle': specs.Array((2,), np.float32)}
    torso = networks.ObservationTorso({**spec, 'right': image}, (), 'minatar')
    pixels = np.random.default_rng(1).integers(0, 256, [2, 3, 5, 6, 2])
    left, right = map(tf.constant, pixels.astype(np.uint8))
    middle = tf.constant([[1.0, -2.0]] * 3)
    features = torso({'left': left, 'middle': middle, 'right': right})
    expected = [middle]
    for index, images in ((0, left), (2, right)):
      alone = networks.MinAtarTorso()
      alone(images)
      prefix = f'observation_torso/minatar_{index}/'
      theirs = [v for v in torso.variables if v.name.startswith(prefix)]
      for one, other in zip(alone.variables, theirs, strict=True):
        one.assign(other)
      expected.insert(index, alone(images))
    np.testing.assert_allclose(
      features, np.concatenate(expected, axis=1), rtol=1e-4, atol=1e-5
    )

  def test_auto_chooses_for_each_image(self):
    spec = {
      'large': specs.Array((36, 84, 1), np.uint8),
      'low': specs.Array((35, 84, 1), np.uint8),
      'minatar': specs.Array((10, 10, 4), np.float32),
      'thin': specs.Array((84, 2, 1), np.uint8),
      'vector': specs.Array((3,), np.float32),
    }
    torso = networks.ObservationTorso(spec, [], 'auto')
    torso({k: tf.zeros([1, *v.shape], v.dtype) for k, v in spec.items()})
    found = {v.name.split('/')[1] for v in torso.variables}
    assert found == {'nature_0', 'minatar_1', 'minatar_2', 'residual_3'}


class TestCheckObservation:
  @pytest.mark.parametrize(
    ('spec', 'message'),
    [
      pytest.param(
        specs.Array((4, 84, 84, 3), np.uint8),
        r'\(4, 84, 84, 3\).*uint8.*environments.wrappers.FrameStack',
        id='video',
      ),
      pytest.param(
        specs.Array((0,), np.float32), r'\(0,\).*float32', id='empty'
      ),
      pytest.param(dm_env_specs.StringArray((), str), 'numeric', id='text'),
      pytest.param(
        specs.Array((35, 84, 1), np.uint8),
        r'at least 36 .*\(35, 84, 1\)',
        id='low',
      ),
    ],
  )
  def test_refuses(self, spec, message):
    vector = specs.Array((3,), np.float32)
    nest = {'a': (vector, spec), 'b': vector}
    for check in (
      networks.check_observation,
      lambda spec: networks.ObservationTorso(spec, [8]),
    ):
      with pytest.raises(
        ValueError, match='^The observation must .*' + message
      ):
        check(spec)
      with pytest.raises(ValueError, match='Leaf a/1 of .*' + message):
        check(nest)

  def test_refuses_images_with_channels_first(self):
    first = specs.Array((3, 210, 160), np.uint8)
    with pytest.raises(ValueError, match=r'Leaf a .*\?channels_first=true'):
      networks.check_observation({'a': first}, 'auto')

  # MiniGrid, a kitchen of 5 x 9, Go, a stack of frames, a board.
  @pytest.mark.parametrize(
    'shape', [(7, 7, 3), (5, 9, 26), (19, 19, 17), (84, 84, 4), (8, 8)], ids=str
  )
  def test_takes_small_images_without_a_warning(self, shape, warnings):
    for spec in (
      specs.BoundedArray(shape, np.uint8, 0, 255),
      specs.BoundedArray(shape, np.float32, 0, 1),
    ):
      networks.check_observation(spec, 'auto')
    assert warnings == []

  @pytest.mark.parametrize(
    ('spec', 'words'),
    [
      (specs.BoundedArray((84, 84), np.uint8, 0, 255), '[84, 84, 1]'),
      (specs.BoundedArray((84, 84, 3), np.float32, 0, 255), 'Return uint8'),
    ],
    ids=['without_channels', 'floats'],
  )
  def test_warns_once_of_images_that_are_not_scaled(
    self, spec, words, warnings
  ):
    for _ in range(2):
      networks.check_observation({'a': spec}, 'auto')
    (message,) = warnings
    assert message.startswith('Leaf a of the observation')
    assert words in message

  @pytest.fixture
  def warnings(self, monkeypatch):
    """Collects logged warnings."""
    torsos._warn.cache_clear()
    logged = []
    monkeypatch.setattr(
      torsos.logging, 'warning', lambda text, *args: logged.append(text % args)
    )
    return logged

  @pytest.mark.parametrize(
    ('spec', 'message'),
    [
      ({'a': None}, 'Leaf a of the observation spec must be a dm_env spec'),
      ({}, 'must have leaves'),
    ],
  )
  def test_refuses_other_objects(self, spec, message):
    with pytest.raises(ValueError, match=message):
      networks.check_observation(spec)
