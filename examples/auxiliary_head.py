"""DQN with an auxiliary head that predicts the next observation.

    python examples/auxiliary_head.py runs/auxiliary_head
    python examples/auxiliary_head.py runs/distributed distributed local_mp
    repertory train --agent=examples.auxiliary_head:PredictingDQN --env=catch

The head shares the torso with the action values, and its loss is added to that
of DQN. Everything else is DQN's, in every topology. The two settings below are
flags. `prediction_error` in the learner's log is the squared error.
"""

import dataclasses
import sys

import numpy as np
import sonnet as snt
import tensorflow as tf

from repertory import launch
from repertory.agents import dqn
from repertory.components import networks
from repertory.components.config import settings
from repertory.components.runtime import data_parallel
from repertory.environments.registry import registry


@dataclasses.dataclass(frozen=True)
class PredictingConfig(dqn.DQNConfig):
  """DQN's settings and the weight of the auxiliary loss."""

  n_step: int = settings.field(1, 'Steps ahead of the predicted observation.')
  prediction_weight: float = settings.field(
    0.1, 'Weight of the auxiliary loss.'
  )


class PredictingNetwork(snt.Module):
  """Action values and predicted observations, from the same features."""

  def __init__(self, spec, config, name='predicting_network'):
    super().__init__(name=name)
    self._num_actions = spec.actions.num_values
    self._torso = networks.ObservationTorso(
      spec.observations, config.hidden_sizes, config.image_torso
    )
    self._value_head = networks.make_value_head(
      self._num_actions, config.dueling
    )
    size = int(np.prod(spec.observations.shape))
    self._prediction_head = snt.Linear(size, name='prediction_head')

  def __call__(self, observation):
    return self._value_head(self._torso(observation))  # [B, A]

  def predict(self, observation, action):
    """Predicts the flattened next observation, `[B, N]`."""
    chosen = tf.one_hot(action, self._num_actions)  # [B, A]
    features = tf.concat([self._torso(observation), chosen], axis=-1)
    return self._prediction_head(features)


class PredictingDQN(dqn.DQNBuilder):
  """DQN with an auxiliary head."""

  def __init__(self, config: PredictingConfig | None = None):
    config = config or PredictingConfig()
    super().__init__(config)
    self._prediction_weight = config.prediction_weight

  def make_network(self, spec):
    if not hasattr(spec.observations, 'shape'):
      raise ValueError(
        f'Observations must be a single array, got {spec.observations}.'
      )
    network = PredictingNetwork(spec, self.config)
    networks.create_variables(network, spec.observations)
    # The policy does not call the head, so create its variables here.
    networks.create_variables(
      lambda observation: network.predict(observation, [0]), spec.observations
    )
    return network

  def additional_loss(self, network, sample):
    data = sample.data
    predict = data_parallel.split_rows(network.predict)
    predicted = predict(data.observation, data.action)  # [B, N]
    following = tf.cast(data.next_observation, tf.float32)
    errors = predicted - tf.reshape(following, tf.shape(predicted))
    error = tf.reduce_mean(tf.reduce_sum(errors**2, axis=-1))
    return self._prediction_weight * error, {'prediction_error': error}


def main(directory: str, *topology: str) -> None:
  experiment = launch.Experiment(
    builder=PredictingDQN(PredictingConfig(hidden_sizes=(64,))),
    environment_factory=registry.make_factory('catch:6x5'),
    max_steps=3_000,
    directory=directory,
    agent='DQN with a prediction head',
    environment='catch:6x5',
  )
  print(launch.run(experiment, *topology).status.evaluation_return)


if __name__ == '__main__':
  main(*(sys.argv[1:] or ['runs/auxiliary_head']))
