"""Tests of `components/networks/image_torsos.py`."""

import copy

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from repertory.components import networks
from repertory.components.config import choices
from repertory.components.networks import image_torsos
from support.system import rare_cases

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


def shapes(module):
  return {v.name.split('/', 1)[1]: tuple(v.shape) for v in module.variables}


def trace(torso, size):
  """Traces a call with an image of that size."""
  torso(tf.zeros([1, 84, 84, 1]))
  images = tf.TensorSpec([1, *size, 1])
  return tf.function(torso, autograph=False).get_concrete_function(images)


class TestNatureTorso:
  def test_variables(self):
    torso = networks.NatureTorso()
    torso(tf.zeros([1, 84, 84, 4]))
    assert shapes(torso) == {
      'conv_0/w:0': (8, 8, 4, 32),
      'conv_0/b:0': (32,),
      'conv_1/w:0': (4, 4, 32, 64),
      'conv_1/b:0': (64,),
      'conv_2/w:0': (3, 3, 64, 64),
      'conv_2/b:0': (64,),
    }

  @pytest.mark.parametrize(
    ('height', 'width', 'expected'),
    [
      # (84 − 8) / 4 + 1 = 20; (20 − 4) / 2 + 1 = 9; 9 − 3 + 1 = 7.
      (84, 84, 7 * 7 * 64),
      # (36 − 8) / 4 + 1 = 8; (8 − 4) / 2 + 1 = 3; 3 − 3 + 1 = 1.
      (36, 36, 1 * 1 * 64),
      # ⌊(51 − 8) / 4⌋ + 1 = 11; ⌊(11 − 4) / 2⌋ + 1 = 4; 4 − 3 + 1 = 2.
      # (52 − 8) / 4 + 1 = 12; (12 − 4) / 2 + 1 = 5; 5 − 3 + 1 = 3.
      (51, 52, 2 * 3 * 64),
    ],
  )
  def test_shape(self, height, width, expected):
    features = networks.NatureTorso()(tf.zeros([3, height, width, 2]))
    assert features.shape == [3, expected]

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


class TestDataEfficientTorso:
  def test_variables(self):
    torso = networks.DataEfficientTorso()
    # ⌊(84 − 5) / 5⌋ + 1 = 16; ⌊(16 − 5) / 5⌋ + 1 = 3.
    assert torso(tf.zeros([1, 84, 84, 4])).shape == [1, 3 * 3 * 64]
    assert shapes(torso) == {
      'conv_0/w:0': (5, 5, 4, 32),
      'conv_0/b:0': (32,),
      'conv_1/w:0': (5, 5, 32, 64),
      'conv_1/b:0': (64,),
    }


class TestMinAtarTorso:
  def test_variables(self):
    torso = networks.MinAtarTorso()
    assert torso(tf.zeros([1, 10, 10, 4])).shape == [1, 8 * 8 * 16]
    assert shapes(torso) == {'conv_0/w:0': (3, 3, 4, 16), 'conv_0/b:0': (16,)}


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
  def test_variables(self):
    torso = networks.ResidualTorso()
    torso(tf.zeros([1, 8, 8, 4]))
    expected = {}
    for section, (before, after) in enumerate([(4, 16), (16, 32), (32, 32)]):
      inner = ['block_0/conv_0', 'block_0/conv_1']
      inner += ['block_1/conv_0', 'block_1/conv_1']
      expected[f'section_{section}/conv/w:0'] = (3, 3, before, after)
      expected[f'section_{section}/conv/b:0'] = (after,)
      for name in inner:
        expected[f'section_{section}/{name}/w:0'] = (3, 3, after, after)
        expected[f'section_{section}/{name}/b:0'] = (after,)
    assert shapes(torso) == expected
    # 15 convolutions, as the figure counts.
    assert len(torso.variables) == 2 * 15

  @pytest.mark.parametrize(
    ('height', 'width', 'expected'),
    [
      # 84, 42, 21, ⌈21 / 2⌉ = 11.
      (84, 84, 11 * 11 * 32),
      # 72, 36, 18, 9; 96, 48, 24, 12: the paper's.
      (72, 96, 9 * 12 * 32),
      # 5, 3, 2, 1; 9, 5, 3, 2.
      (5, 9, 1 * 2 * 32),
      (1, 1, 1 * 1 * 32),
    ],
  )
  def test_shape(self, height, width, expected):
    features = networks.ResidualTorso()(tf.zeros([3, height, width, 2]))
    assert features.shape == [3, expected]

  @pytest.mark.parametrize(
    ('height', 'width', 'channels'),
    [(6, 5, (3,)), (6, 5, (3, 4)), (7, 8, (4,))],
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

  def test_blocks_add_to_what_comes_in(self):
    torso = networks.ResidualTorso([1])
    images = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    torso(images)
    for variable in torso.variables:
      variable.assign(tf.zeros_like(variable))
    # The first convolution takes each pixel as it is, and subtracts 12.
    for variable in torso.variables:
      if variable.name == 'residual_torso/section_0/conv/w:0':
        variable.assign(np.eye(9)[4].reshape([3, 3, 1, 1]))
      if variable.name == 'residual_torso/section_0/conv/b:0':
        variable.assign([-12.0])
    # Of rows and columns 0 to 2 the largest is 10; then 11, 14, 15.
    np.testing.assert_array_equal(torso(images), [[0, 0, 2, 3]])


class TestBoth:
  @pytest.mark.parametrize('make', TORSOS)
  def test_only_bytes_are_scaled(self, make):
    images = make_images(36, 36, 2)
    torso = make()
    features = torso(tf.constant(images))
    assert features.dtype == tf.float32
    assert np.max(features) > 0
    # Other values are not scaled, whatever their size and dtype.
    for dtype in (np.float32, np.float64):
      scaled = torso(tf.constant((images / 255).astype(dtype)))
      np.testing.assert_allclose(scaled, features, rtol=1e-4, atol=1e-6)
    for dtype in (np.float32, np.int32):
      # All biases are 0, so the network is as large as its input.
      as_is = torso(tf.constant(images.astype(dtype)))
      np.testing.assert_allclose(as_is, 255 * features, rtol=1e-3, atol=1e-2)

  @pytest.mark.parametrize('make', TORSOS)
  @pytest.mark.parametrize('jit_compile', [False, True])
  def test_compiled_is_eager(self, make, jit_compile):
    torso = make()
    torso(tf.zeros([1, 37, 40, 3], tf.uint8))
    randomize(torso)
    call = tf.function(
      torso,
      input_signature=[tf.TensorSpec([None, 37, 40, 3], tf.uint8)],
      jit_compile=jit_compile,
    )
    for size in (1, 3):
      images = tf.constant(make_images(37, 40, 3, size))
      np.testing.assert_allclose(
        call(images), torso(images), rtol=1e-4, atol=1e-4
      )

  @pytest.mark.parametrize('make', TORSOS)
  @pytest.mark.parametrize(
    'jit_compile', rare_cases.daily([False, True], [False])
  )
  def test_gradients_reach_all_variables(self, make, jit_compile):
    torso = make()
    images = tf.constant(make_images(36, 36, 2))
    torso(images)
    randomize(torso)

    @tf.function(jit_compile=jit_compile, autograph=False)
    def gradients():
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(torso(images) ** 2)
      return tape.gradient(loss, torso.trainable_variables)

    for variable, gradient in zip(torso.trainable_variables, gradients()):
      assert gradient is not None, variable.name
      assert np.all(np.isfinite(gradient)), variable.name
      assert np.max(np.abs(gradient)) > 0, variable.name

  @pytest.mark.parametrize('make', TORSOS)
  def test_leading_axes_may_be_merged(self, make):
    torso = make()
    images = tf.constant(make_images(36, 36, 1, 6))  # [T · B, H, W, C]
    features = snt.BatchApply(torso)(tf.reshape(images, [3, 2, 36, 36, 1]))
    np.testing.assert_allclose(
      features, tf.reshape(torso(images), [3, 2, -1]), rtol=1e-4, atol=1e-6
    )

  @pytest.mark.parametrize('make', TORSOS)
  def test_copy_has_variables_of_its_own(self, make):
    images = tf.constant(make_images(36, 36, 1))
    torso = make()
    before = torso(images)
    other = copy.deepcopy(torso)
    for variable in torso.variables:
      variable.assign(tf.zeros_like(variable))
    np.testing.assert_array_equal(other(images), before)
    assert np.max(torso(images)) == 0


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
