"""From images to feature vectors.

All networks are the published ones up to, and without, their dense layer:
that one is an MLP's, see `torsos.ObservationTorso`.
"""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf


class _ConvolutionalTorso(snt.Module):
  """Applies convolutions without padding, a ReLU after each."""

  def __init__(self, layers: Sequence[tuple[int, int, int]], name: str):
    """Makes the layers.

    Args:
      layers: Channels, pixels of a kernel's side and stride of each.
    """
    super().__init__(name=name)
    self._convolutions = [
      snt.Conv2D(channels, size, stride, padding='VALID', name=f'conv_{i}')
      for i, (channels, size, stride) in enumerate(layers)
    ]

  def __call__(self, images: tf.Tensor) -> tf.Tensor:
    """Maps images to features.

    Args:
      images: `[B, H, W, C]`, at least `min_pixels` high and wide; uint8 of
        0 to 255, or other numbers, which are taken as they are.

    Returns:
      `[B, D]`, at least 0.
    """
    x = _scale(images)  # [B, H, W, C]
    for convolution in self._convolutions:
      x = tf.nn.relu(convolution(x))
    return _flatten(x)  # [B, D]


class NatureTorso(_ConvolutionalTorso):
  """The three convolutions of Nature DQN: 3136 features for 84 by 84 pixels.

  See https://doi.org/10.1038/nature14236, methods, "model architecture".
  """

  # Backwards: the last layer needs 3 pixels, so the second one 3 · 2 + 2 = 8,
  # so the first one 8 · 4 + 4 = 36.
  min_pixels = 36

  def __init__(self, name: str = 'nature_torso'):
    super().__init__([(32, 8, 4), (64, 4, 2), (64, 3, 1)], name)


class DataEfficientTorso(_ConvolutionalTorso):
  """Two convolutions that overlap nowhere: 576 features for 84 by 84 pixels.

  A sixth of the arithmetic of `NatureTorso`. That of data-efficient Rainbow,
  see https://arxiv.org/abs/1906.05243, appendix.
  """

  # Backwards: the last layer needs 5 pixels, so the first one 5 · 5 = 25.
  min_pixels = 25

  def __init__(self, name: str = 'data_efficient_torso'):
    super().__init__([(32, 5, 5), (64, 5, 5)], name)


class MinAtarTorso(_ConvolutionalTorso):
  """One convolution of 3 pixels: 1024 features for 10 by 10 pixels.

  See https://arxiv.org/abs/1903.03176, section 4.
  """

  min_pixels = 3

  def __init__(self, name: str = 'minatar_torso'):
    super().__init__([(16, 3, 1)], name)


class ResidualTorso(snt.Module):
  """Applies the deep residual network of IMPALA.

  For each number of channels a convolution, a pooling that halves height and
  width, and two residual blocks; a ReLU after the last.

  See https://arxiv.org/abs/1802.01561, figure 3, on the right.
  """

  # All layers pad, and halves are rounded up.
  min_pixels = 1

  def __init__(
    self,
    channels: Sequence[int] = (16, 32, 32),
    name: str = 'residual_torso',
  ):
    super().__init__(name=name)
    self._sections = [
      _Section(c, name=f'section_{i}') for i, c in enumerate(channels)
    ]

  def __call__(self, images: tf.Tensor) -> tf.Tensor:
    """Maps images to features.

    Args:
      images: `[B, H, W, C]`, of any size; uint8 of 0 to 255, or other numbers,
        which are taken as they are.

    Returns:
      `[B, D]`, at least 0; D = 3872 for 84 by 84 pixels.
    """
    x = _scale(images)  # [B, H, W, C]
    for section in self._sections:
      x = section(x)
    return _flatten(tf.nn.relu(x))  # [B, D]


# Those that agents know by name.
IMAGE_TORSOS = {
  'nature': NatureTorso,
  'residual': ResidualTorso,
  'data_efficient': DataEfficientTorso,
  'minatar': MinAtarTorso,
}


def choose(image_torso: str, height: int, width: int) -> str:
  """Returns which torso reads images of a size.

  Args:
    image_torso: One of `IMAGE_TORSOS`, which it stays, or 'auto': then
      'nature' if the image is large enough for it, else 'minatar', and
      'residual' for what is too small for that one, too.
    height: In pixels.
    width: In pixels.
  """
  if image_torso != 'auto':
    return image_torso
  for name in ('nature', 'minatar'):
    if min(height, width) >= IMAGE_TORSOS[name].min_pixels:
      return name
  return 'residual'


class _Section(snt.Module):
  """Halves height and width, between a convolution and residual blocks."""

  def __init__(self, channels: int, name: str):
    super().__init__(name=name)
    self._convolution = snt.Conv2D(channels, 3, name='conv')
    self._blocks = [
      _ResidualBlock(channels, name=f'block_{i}') for i in range(2)
    ]

  def __call__(self, x: tf.Tensor) -> tf.Tensor:
    x = self._convolution(x)  # [B, H, W, channels]
    x = tf.nn.max_pool2d(x, ksize=3, strides=2, padding='SAME')
    for block in self._blocks:
      x = block(x)
    return x  # [B, ⌈H / 2⌉, ⌈W / 2⌉, channels]


class _ResidualBlock(snt.Module):
  """Computes x + conv(relu(conv(relu(x))))."""

  def __init__(self, channels: int, name: str):
    super().__init__(name=name)
    self._convolutions = [
      snt.Conv2D(channels, 3, name=f'conv_{i}') for i in range(2)
    ]

  def __call__(self, x: tf.Tensor) -> tf.Tensor:
    y = x
    for convolution in self._convolutions:
      y = convolution(tf.nn.relu(y))
    return x + y  # [B, H, W, channels]


def _scale(images: tf.Tensor) -> tf.Tensor:
  x = tf.cast(images, tf.float32)
  return x / 255 if images.dtype == tf.uint8 else x


def _flatten(x: tf.Tensor) -> tf.Tensor:
  _, height, width, channels = x.shape
  return tf.reshape(x, [tf.shape(x)[0], height * width * channels])
