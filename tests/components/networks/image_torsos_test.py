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


def slow_convolution(x, w, b, stride):
  """y[i, j, o] = b[o] + Σ x[s i + k, s j + l, c] w[k, l, c, o]; `[H, W, C]`."""
  size = w.shape[0]
  height = (x.shape[0] - size) // stride + 1
  width = (x.shape[1] - size) // stride + 1
  y = np.zeros([height, width, w.shape[-1]])
  for i in range(height):
    for j in range(width):
      patch = x[i * stride : i * stride + size, j * stride : j * stride + size]
      for o in range(w.shape[-1]):
        y[i, j, o] = b[o] + np.sum(patch * w[..., o])
  return y


def slow_same_convolution(x, w, b):
  """The same with stride 1 and a border of zeros around the image."""
  return slow_convolution(np.pad(x, [(1, 1), (1, 1), (0, 0)]), w, b, 1)


def slow_max_pool(x):
  """The largest of 3 by 3, at every second pixel.

  Of an even number of pixels the first window starts at the border and the last
  one sticks out; of an odd number both stick out.
  """
  height, width, channels = x.shape
  y = np.zeros([(height + 1) // 2, (width + 1) // 2, channels])
  for i in range(y.shape[0]):
    for j in range(y.shape[1]):
      top, left = 2 * i - height % 2, 2 * j - width % 2
      window = x[max(top, 0) : top + 3, max(left, 0) : left + 3]
      y[i, j] = window.max(axis=(0, 1))
  return y


def slow_convolutional(name, strides, arrays, image):
  """Features of one image."""
  x = image / 255
  for layer, stride in enumerate(strides):
    w, b = (arrays[f'{name}/conv_{layer}/{n}:0'] for n in 'wb')
    x = np.maximum(slow_convolution(x, w, b, stride), 0)
  return x.ravel()


def slow_residual(arrays, image, num_sections):
  """Features of one image."""

  def convolve(x, name):
    w, b = (arrays[f'residual_torso/{name}/{n}:0'] for n in 'wb')
    return slow_same_convolution(x, w, b)

  x = image / 255
  for s in range(num_sections):
    x = slow_max_pool(convolve(x, f'section_{s}/conv'))
    for block in (f'section_{s}/block_0', f'section_{s}/block_1'):
      inner = convolve(np.maximum(x, 0), f'{block}/conv_0')
      x = x + convolve(np.maximum(inner, 0), f'{block}/conv_1')
  return np.maximum(x, 0).ravel()


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
      pytest.param(
        networks.NatureTorso, (40, 44), [4, 2, 1], 1 * 2 * 64, id='nature'
      ),
      # 26: 5, 1; 54: 10, 2.
      pytest.param(
        networks.DataEfficientTorso,
        (26, 54),
        [5, 5],
        1 * 2 * 64,
        id='data_efficient',
      ),
      # 4: 2; 5: 3.
      pytest.param(
        networks.MinAtarTorso, (4, 5), [1], 2 * 3 * 16, id='minatar'
      ),
    ],
  )
  def test_is_the_slow_one(self, make, size, strides, num_features):
    height, width = size
    images = make_images(height, width, 2)
    torso = make()
    torso(tf.constant(images))
    arrays = randomize(torso)
    features = torso(tf.constant(images))
    assert features.shape == [2, num_features]
    expected = [
      slow_convolutional(torso.name, strides, arrays, image) for image in images
    ]
    # Some are cut off at 0, and not nearly all.
    share = np.count_nonzero(expected) / np.size(expected)
    assert 60 / 192 <= share <= 200 / 256
    np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-5)


class TestResidualTorso:
  @pytest.mark.parametrize(
    ('height', 'width', 'channels'),
    [(6, 5, (3, 4)), (7, 8, (4,))],
  )
  def test_is_the_slow_one(self, height, width, channels):
    images = make_images(height, width, 2)
    torso = networks.ResidualTorso(channels)
    torso(tf.constant(images))
    arrays = randomize(torso)
    expected = [slow_residual(arrays, i, len(channels)) for i in images]
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


def test_choice_by_size():
  for size, expected in (
    ((84, 84), 'nature'),
    ((36, 36), 'nature'),
    ((36, 35), 'minatar'),
    ((35, 84), 'minatar'),
    ((10, 10), 'minatar'),
    ((7, 3), 'minatar'),
    ((2, 84), 'residual'),
    ((1, 1), 'residual'),
  ):
    assert image_torsos.choose('auto', *size) == expected, size
    # It fits, and what is named stays.
    minimum = networks.IMAGE_TORSOS[expected].min_pixels
    assert min(size) >= minimum
    for name in networks.IMAGE_TORSOS:
      assert image_torsos.choose(name, *size) == name


def test_names_are_those_of_the_settings():
  assert list(choices.IMAGE_TORSOS) == ['auto', *networks.IMAGE_TORSOS]
