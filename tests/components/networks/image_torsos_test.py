"""Tests of `components/networks/image_torsos.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import networks
from repertory.components.config import choices
from repertory.components.networks import image_torsos

TORSOS = tuple(networks.IMAGE_TORSOS.values())


def randomize(module):
  """Gives all variables values, biases too; returns them by name."""
  random = np.random.default_rng(7)
  for variable in module.variables:
    # Sums of as many terms as a weight has inputs stay about 1.
    size = np.prod(variable.shape[:-1]) ** -0.5
    variable.assign(size * random.normal(size=variable.shape))
  arrays = {v.name: v.numpy().astype(np.float64) for v in module.variables}
  assert len(arrays) == len(module.variables)
  return arrays


def make_images(height, width, channels, batch_size=2):
  random = np.random.default_rng(3)
  shape = [batch_size, height, width, channels]
  return random.integers(0, 256, shape).astype(np.uint8)


def convolve(arrays, name, x, stride=1, padding='VALID'):
  w, b = (arrays[f'{name}/{n}:0'] for n in 'wb')
  return tf.nn.conv2d(x, w, stride, padding) + b


def plain_residual(arrays, x, num_sections):
  """Features, with a border of zeros around the images of each layer."""

  def convolve_same(x, name):
    return convolve(arrays, f'residual_torso/{name}', x, padding='SAME')

  for s in range(num_sections):
    x = tf.nn.max_pool2d(convolve_same(x, f'section_{s}/conv'), 3, 2, 'SAME')
    for block in (f'section_{s}/block_0', f'section_{s}/block_1'):
      inner = convolve_same(tf.nn.relu(x), f'{block}/conv_0')
      x = x + convolve_same(tf.nn.relu(inner), f'{block}/conv_1')
  return tf.reshape(tf.nn.relu(x), [len(x), -1]).numpy()


def trace(torso, size):
  """Traces a call with an image of that size."""
  torso(tf.zeros([1, 84, 84, 1]))
  images = tf.TensorSpec([1, *size, 1])
  return tf.function(torso, autograph=False).get_concrete_function(images)


class TestSizes:
  @pytest.mark.parametrize(
    ('make', 'size', 'num_features', 'num_convolutions'),
    [
      # (84 − 8) / 4 + 1 = 20; (20 − 4) / 2 + 1 = 9; 9 − 3 + 1 = 7.
      (networks.NatureTorso, 84, 7 * 7 * 64, 3),
      # ⌊(84 − 5) / 5⌋ + 1 = 16; ⌊(16 − 5) / 5⌋ + 1 = 3.
      (networks.DataEfficientTorso, 84, 3 * 3 * 64, 2),
      (networks.MinAtarTorso, 10, 8 * 8 * 16, 1),
      # 84, 42, 21, ⌈21 / 2⌉ = 11; 15 convolutions, as the figure counts.
      (networks.ResidualTorso, 84, 11 * 11 * 32, 15),
      (networks.ResidualTorso, 1, 1 * 1 * 32, 15),
    ],
  )
  def test_features_and_variables(
    self, make, size, num_features, num_convolutions
  ):
    torso = make()
    assert torso(tf.zeros([2, size, size, 2])).shape == [2, num_features]
    assert len({v.name for v in torso.variables}) == 2 * num_convolutions

  @pytest.mark.parametrize(
    'make',
    [networks.NatureTorso, networks.DataEfficientTorso, networks.MinAtarTorso],
  )
  def test_smallest_is_where_the_feature_map_ends(self, make):
    smallest = make.min_pixels
    for size in ((smallest, 84), (84, smallest)):
      (features,) = trace(make(), size).outputs
      assert features.shape[1] > 0
    for size in ((smallest - 1, 84), (84, smallest - 1)):
      with pytest.raises(ValueError, match='Negative dimension'):
        trace(make(), size)


class TestConvolutions:
  @pytest.mark.parametrize(
    ('make', 'size', 'strides', 'num_features'),
    [
      # 40: 9, 3, 1; 44: 10, 4, 2.
      (networks.NatureTorso, (40, 44), [4, 2, 1], 1 * 2 * 64),
      # 26: 5, 1; 54: 10, 2.
      (networks.DataEfficientTorso, (26, 54), [5, 5], 1 * 2 * 64),
      # 4: 2; 5: 3.
      (networks.MinAtarTorso, (4, 5), [1], 2 * 3 * 16),
    ],
  )
  def test_equals_plain_tensorflow(self, make, size, strides, num_features):
    height, width = size
    images = make_images(height, width, 2)
    torso = make()
    torso(tf.constant(images))
    arrays = randomize(torso)
    features = torso(tf.constant(images))
    assert features.shape == [2, num_features]
    x = images / 255
    for i, stride in enumerate(strides):
      x = tf.nn.relu(convolve(arrays, f'{torso.name}/conv_{i}', x, stride))
    expected = tf.reshape(x, [2, -1]).numpy()
    # Some are cut off at 0, and not nearly all.
    share = np.count_nonzero(expected) / np.size(expected)
    assert 60 / 192 <= share <= 200 / 256
    np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-5)


class TestResidualTorso:
  @pytest.mark.parametrize(
    ('height', 'width', 'channels'),
    [(6, 5, (3, 4)), (7, 8, (4,))],
  )
  def test_equals_plain_tensorflow(self, height, width, channels):
    images = make_images(height, width, 2)
    torso = networks.ResidualTorso(channels)
    torso(tf.constant(images))
    arrays = randomize(torso)
    expected = plain_residual(arrays, images / 255, len(channels))
    assert np.count_nonzero(expected) > 0
    assert np.count_nonzero(expected) < np.size(expected)
    np.testing.assert_allclose(
      torso(tf.constant(images)), expected, rtol=1e-4, atol=1e-5
    )


class TestScaling:
  @pytest.mark.parametrize('make', TORSOS)
  def test_only_bytes_are_scaled(self, make):
    images = make_images(36, 36, 2)
    torso = make()
    features = torso(tf.constant(images))
    assert features.dtype == tf.float32
    assert np.max(features) > 0
    # All biases are 0, so the network is as large as its input.
    as_is = torso(tf.constant(images.astype(np.int32)))
    np.testing.assert_allclose(as_is, 255 * features, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(
  ('size', 'expected'),
  [((36, 84), 'nature'), ((35, 84), 'minatar'), ((3, 7), 'minatar'),
   ((2, 84), 'residual'), ((1, 1), 'residual')],
)  # fmt: skip
def test_choice_by_size(size, expected):
  assert image_torsos.choose('auto', *size) == expected
  # It fits, and what is named stays.
  assert min(size) >= networks.IMAGE_TORSOS[expected].min_pixels
  for name in networks.IMAGE_TORSOS:
    assert image_torsos.choose(name, *size) == name


def test_names_are_those_of_the_settings():
  assert list(choices.IMAGE_TORSOS) == ['auto', *networks.IMAGE_TORSOS]
