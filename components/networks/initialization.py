"""Creation of network variables before the first batch."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tree

from repertory.components import specs, types


def create_variables(
  network: Callable[[types.Nest], Any], observation_spec: types.Nest
) -> None:
  """Creates the variables of a network by calling it once.

  Parts that the network does not call, such as an auxiliary head, have to be
  called separately.

  Args:
    network: Maps a nest of observations `[B, ...]` to anything.
    observation_spec: Nest of array specs, without a batch axis.
  """
  observation = specs.zeros(observation_spec, 1)
  network(tree.map_structure(tf.convert_to_tensor, observation))


def create_critic_variables(
  critic: Callable[[types.Nest, tf.Tensor], Any],
  observation_spec: types.Nest,
  action_size: int,
) -> None:
  """Creates the variables of a critic by calling it once.

  Args:
    critic: Maps a nest of observations `[B, ...]` and actions `[B, D]` to
      anything.
    observation_spec: Nest of array specs, without a batch axis.
    action_size: D, dimensions of an action.
  """
  action = tf.zeros([1, action_size])
  create_variables(
    lambda observation: critic(observation, action), observation_spec
  )
