"""Convolutional torsos for images.

They are the published networks without their dense layer, which is part of the
MLP in `torsos.ObservationTorso`.
"""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf


class _ConvolutionalTorso(snt.Module):
  """Convolutions without padding, each followed by a ReLU."""

  def __init__(self, layers: Sequence[tuple[int, int, int]], name: str):
    """Takes channels, kernel size and stride of each layer."""
    super().__init__(name=name)
    self._convolutions = [
      snt.Conv2D(channels, size, stride, padding='VALID', name=f'conv_{i}')
      for i, (channels, size, stride) in enumerate(layers)
    ]

  def __call__(self, images: tf.Tensor) -> tf.Tensor:
    """Maps images `[B, H, W, C]` to features `[B, D]`, not negative.

    Images are at least `min_pixels` high and wide; uint8 is divided by 255.
    """
    x = _scale(images)  # [B, H, W, C]
    for convolution in self._convolutions:
      x = tf.nn.relu(convolution(x))
    return _flatten(x)  # [B, D]


class NatureTorso(_ConvolutionalTorso):
  """Convolutions of Nature DQN: 3136 features for 84 by 84 pixels.

  See https://doi.org/10.1038/nature14236, methods, "model architecture".
  """

  # Of the layers, from the last one: 3, 3 · 2 + 2 = 8 and 8 · 4 + 4 = 36.
  min_pixels = 36

  def __init__(self, name: str = 'nature_torso'):
    super().__init__([(32, 8, 4), (64, 4, 2), (64, 3, 1)], name)


class DataEfficientTorso(_ConvolutionalTorso):
  """Data-efficient Rainbow torso: 576 features for 84 by 84 pixels.

  Two convolutions without overlap, at a sixth of the FLOPs of `NatureTorso`.
  See https://arxiv.org/abs/1906.05243, appendix.
  """

  min_pixels = 25

  def __init__(self, name: str = 'data_efficient_torso'):
    super().__init__([(32, 5, 5), (64, 5, 5)], name)


class MinAtarTorso(_ConvolutionalTorso):
  """MinAtar torso, one 3×3 convolution: 1024 features for 10 by 10 pixels.

  See https://arxiv.org/abs/1903.03176, section 4.
  """

  min_pixels = 3

  def __init__(self, name: str = 'minatar_torso'):
    super().__init__([(16, 3, 1)], name)


class ResidualTorso(snt.Module):
  """Deep residual network of IMPALA.

  Each section has a convolution, max pooling with stride 2 and two residual
  blocks: https://arxiv.org/abs/1802.01561, figure 3, right.
  """

  # All layers pad, and pooling rounds sizes up.
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
    """Maps images `[B, H, W, C]` to features `[B, D]`, not negative.

    uint8 is divided by 255. D = 3872 for 84 by 84 pixels.
    """
    x = _scale(images)  # [B, H, W, C]
    for section in self._sections:
      x = section(x)
    return _flatten(tf.nn.relu(x))  # [B, D]


IMAGE_TORSOS = {
  'nature': NatureTorso,
  'residual': ResidualTorso,
  'data_efficient': DataEfficientTorso,
  'minatar': MinAtarTorso,
}


def choose(image_torso: str, height: int, width: int) -> str:
  """Returns the name of the torso for an image size in pixels.

  'auto' is 'nature' if the image is large enough for it, else 'minatar', else
  'residual'. Other names are returned as they are.
  """
  if image_torso != 'auto':
    return image_torso
  for name in ('nature', 'minatar'):
    if min(height, width) >= IMAGE_TORSOS[name].min_pixels:
      return name
  return 'residual'


class _Section(snt.Module):
  """Section of the residual network; it halves height and width."""

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
  """Residual block, x + conv(relu(conv(relu(x))))."""

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
