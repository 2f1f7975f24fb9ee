"""The update of BC."""

from collections.abc import Callable

import sonnet as snt
import tensorflow as tf

from repertory.agents.bc import config as bc_config
from repertory.components import data_parallel, learners, programs, types

# Maps what a network says, `[B, N]`, and the actions of the data, `[B, ...]`,
# to a scalar.
Loss = Callable[[tf.Tensor, types.Nest], tf.Tensor]


class BCUpdate(programs.Update):
  """Makes what a network says of observations more like what was done."""

  def __init__(
    self,
    network: snt.Module,
    loss: Loss,
    config: bc_config.BCConfig,
  ):
    """Takes over the network.

    Args:
      network: Maps observations `[B, ...]` to `[B, N]`.
      loss: What is lowered.
      config: The settings.
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

  def __call__(self, sample: types.Sample) -> programs.UpdateResult:
    data = sample.data
    network = data_parallel.by_rows(self._network)
    with tf.GradientTape() as tape:
      loss = self._loss(network(data.observation), data.action)
    norm = self._optimizer.minimize(tape, loss)
    return programs.UpdateResult({'loss': loss, 'gradient_norm': norm})
