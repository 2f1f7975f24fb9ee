"""Update of BC."""

from collections.abc import Callable

import sonnet as snt
import tensorflow as tf

from repertory.agents.bc import config as bc_config
from repertory.components import interfaces, learners, types
from repertory.components.runtime import data_parallel

# Maps network outputs `[B, N]` and the data set's actions `[B, ...]` to a
# scalar.
Loss = Callable[[tf.Tensor, types.Nest], tf.Tensor]


class BCUpdate(interfaces.Update):
  """Maximizes the likelihood of the data set's actions."""

  def __init__(
    self,
    network: snt.Module,
    loss: Loss,
    config: bc_config.BCConfig,
  ):
    """Initializes the update.

    Args:
      network: Maps observations `[B, ...]` to `[B, N]`.
      loss: Loss function.
      config: The config.
    """
    super().__init__()
    self._network = network
    self._loss = loss
    self._optimizer = learners.ClippedAdam(
      network.trainable_variables,
      config.learning_rate,
      config.adam_epsilon,
      config.max_gradient_norm,
    )

  @property
  def exports(self):
    return {'policy': self._network.variables}

  def __call__(self, sample: types.Sample) -> interfaces.UpdateResult:
    data = sample.data
    network = data_parallel.split_rows(self._network)
    with tf.GradientTape() as tape:
      loss = self._loss(network(data.observation), data.action)
    norm = self._optimizer.minimize(tape, loss)
    return interfaces.UpdateResult({'loss': loss, 'gradient_norm': norm})
