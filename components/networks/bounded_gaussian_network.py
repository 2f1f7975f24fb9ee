"""Policies whose deviations are the same in all states."""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf

from repertory.components import action_scaling, specs
from repertory.components.networks import initialization, torsos


class BoundedGaussianHead(snt.Module):
  """Maps features to the parameters of a `BoundedGaussian`.

  Means follow from the features; deviations are variables, 1 at first.
  """

  def __init__(self, size: int, name: str = 'head'):
    """Makes the layer.

    Args:
      size: D, numbers of an action.
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
  """Makes a network of all its variables, from observations to parameters.

  Args:
    spec: One with bounded arrays of floats for an action.
    hidden_sizes: Layers.
    image_torso: What reads image leaves, one of `IMAGE_TORSOS` or 'auto'.

  Raises:
    ValueError: If observations or actions are of another kind.
  """
  size = action_scaling.ActionScaling(spec.actions).size
  torso = torsos.ObservationTorso(spec.observations, hidden_sizes, image_torso)
  network = snt.Sequential([torso, BoundedGaussianHead(size)])
  initialization.create_variables(network, spec.observations)
  return network
