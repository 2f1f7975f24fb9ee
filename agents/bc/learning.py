"""Update of BC."""

import sonnet as snt
import tensorflow as tf

from repertory.agents.bc import config as bc_config
from repertory.components import interfaces, learners, losses, specs, types
from repertory.components.actions import (
  action_parts,
  action_scaling,
  discrete_actions,
)
from repertory.components.runtime import data_parallel


class BCUpdate(interfaces.Update):
  """Maximizes the likelihood of the data set's actions.

  The network maps observations `[B, ...]` to logits `[B, A]` of discrete
  actions, or to continuous actions in [−1, 1], `[B, D]`.
  """

  def __init__(
    self,
    network: snt.Module,
    spec: specs.EnvironmentSpec,
    config: bc_config.BCConfig,
  ):
    super().__init__()
    self._network = network
    if action_parts.are_continuous(spec.actions):
      self._loss = losses.squared_cloning_loss
      self._scaling = action_scaling.ActionScaling(spec.actions)
    else:
      self._loss = losses.cross_entropy_cloning_loss
      self._scaling = discrete_actions.DiscreteActions(spec.actions)
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
      outputs = network(data.observation)
      loss = self._loss(outputs, self._scaling.from_action(data.action))
    norm = self._optimizer.minimize(tape, loss)
    return interfaces.UpdateResult({'loss': loss, 'gradient_norm': norm})
