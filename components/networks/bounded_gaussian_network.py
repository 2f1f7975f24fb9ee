"""Gaussian policy network with state-independent standard deviations."""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf

from repertory.components import specs
from repertory.components.actions import action_scaling
from repertory.components.networks import initialization, torsos


class BoundedGaussianHead(snt.Module):
  """Head that parameterizes a `BoundedGaussian`.

  Means depend on the features; standard deviations are variables, initially 1.
  """

  def __init__(self, size: int, name: str = 'head'):
    """Creates the layer.

    Args:
      size: D, dimensions of an action.
    """
    super().__init__(name=name)
    self._mean = snt.Linear(size, name='mean')
    self._log_scale = tf.Variable(tf.zeros([size]), name='log_scale')

  def __call__(self, features: tf.Tensor) -> tf.Tensor:
    """Maps features `[B, F]` to parameters `[B, 2 D]`."""
    mean = self._mean(features)  # [B, D]
    log_scale = self._log_scale + tf.zeros_like(mean)  # [B, D]
    return tf.concat([mean, log_scale], axis=-1)


def make_bounded_gaussian_network(
  spec: specs.EnvironmentSpec,
  hidden_sizes: Sequence[int],
  image_torso: str = 'auto',
) -> snt.Module:
  """Creates a policy network that maps observations to parameters.

  Args:
    spec: Environment spec with bounded continuous actions.
    hidden_sizes: Sizes of the hidden layers.
    image_torso: Torso for images, one of `IMAGE_TORSOS` or 'auto'.

  Raises:
    ValueError: If observations or actions are unsupported.
  """
  size = action_scaling.ActionScaling(spec.actions).size
  torso = torsos.ObservationTorso(spec.observations, hidden_sizes, image_torso)
  network = snt.Sequential([torso, BoundedGaussianHead(size)])
  initialization.create_variables(network, spec.observations)
  return network
