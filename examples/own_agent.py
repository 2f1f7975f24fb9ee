"""Custom agent: DQN with three parts replaced.

    python examples/own_agent.py runs/own_agent
    python examples/own_agent.py runs/distributed distributed local_mp
    repertory train --agent=examples.own_agent:OwnBuilder --env=catch:6x5

- Its network has layer normalization; DQN's does not.
- Its actors may run further ahead of the learner.
- It explores by sampling from softmax(values / temperature), with a different
  temperature in each environment, instead of ε-greedily.

Everything else is inherited from DQN, and the agent runs in every topology:
with the first command in one thread, with the second distributed over
processes. The third selects it by its import path, with flags for all settings.
"""

import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import sonnet as snt
import tensorflow as tf

from repertory import launch
from repertory.agents import dqn
from repertory.components import interfaces, networks, specs
from repertory.components.config import settings
from repertory.components.runtime import random_streams
from repertory.environments.registry import registry


@dataclasses.dataclass(frozen=True)
class OwnConfig(dqn.DQNConfig):
  """DQN's settings and two more, which `repertory agents` also lists."""

  min_temperature: float = settings.field(
    0.01, 'Lowest temperature of an environment.'
  )
  max_temperature: float = settings.field(
    0.3, 'Highest temperature of an environment.'
  )


class BoltzmannPolicy(interfaces.Policy):
  """Samples action a with probability softmax(q / temperature)_a.

  Temperature and random numbers belong to the environment, as
  `interfaces.Policy` requires: both are rows of the state.
  """

  def __init__(self, network, temperatures: Sequence[float], seed: int, dtype):
    super().__init__()
    self._network = network
    self._temperatures = np.asarray(temperatures, np.float32)
    self._seed = seed
    self._dtype = dtype

  def initial_state(self, environment_ids):
    return {
      'temperature': tf.constant(self._temperatures[list(environment_ids)]),
      'random': random_streams.initial_counters(self._seed, environment_ids),
    }

  def describe(self, environment_ids):
    return {'temperatures': self._temperatures[list(environment_ids)].tolist()}

  def step(self, observation, state):
    values = self._network(observation)  # [B, A]
    logits = values / state['temperature'][:, None]  # [B, A]
    draw, _, counters = random_streams.next_uniforms(state['random'])  # [B]
    below = tf.cumsum(tf.nn.softmax(logits), axis=-1) <= draw[:, None]  # [B, A]
    # Rounding may leave the sum just below 1.
    last = tf.shape(values)[-1] - 1
    action = tf.minimum(tf.reduce_sum(tf.cast(below, tf.int32), -1), last)
    return interfaces.PolicyOutput(
      action=tf.cast(action, self._dtype),
      extras=(),
      state={'temperature': state['temperature'], 'random': counters},
    )


class OwnBuilder(dqn.DQNBuilder):
  """DQN with three parts replaced."""

  def __init__(self, config: OwnConfig | None = None):
    config = config or OwnConfig()
    super().__init__(config)
    self._temperatures = config.max_temperature, config.min_temperature

  def make_network(self, spec: specs.EnvironmentSpec) -> snt.Module:
    # Rejects unsupported observations before anything starts.
    torso = networks.ObservationTorso(
      spec.observations, (), self.config.image_torso
    )
    layers: list = [torso]
    for size in self.config.hidden_sizes:
      layers += [snt.Linear(size), snt.LayerNorm(-1, True, True), tf.nn.relu]
    network = snt.Sequential(
      [*layers, networks.DuelingHead(spec.actions.num_values)]
    )
    networks.create_variables(network, spec.observations)
    return network

  def experience(self, spec, num_environments):
    experience = super().experience(spec, num_environments)
    limit: Any = experience.table.rate_limit  # None for queues only.
    limit = dataclasses.replace(limit, error_buffer=2 * limit.error_buffer)
    return experience.with_table(rate_limit=limit)

  def make_policy(self, network, acting):
    if acting.evaluation:  # Greedy, as in DQN's evaluation.
      return super().make_policy(network, acting)
    temperatures = np.geomspace(*self._temperatures, acting.num_environments)
    return BoltzmannPolicy(
      network,
      temperatures.tolist(),
      acting.seed,
      tf.as_dtype(acting.spec.actions.dtype),
    )


def main(directory: str, *topology: str) -> None:
  experiment = launch.Experiment(
    builder=OwnBuilder(OwnConfig(hidden_sizes=(64,), max_replay_size=2_000)),
    environment_factory=registry.make_factory('catch:6x5'),
    max_steps=3_000,
    directory=directory,
    agent='own agent',
    environment='catch:6x5',
    num_actors=2,
    environments_per_actor=2,
  )
  print(launch.run(experiment, *topology).status.evaluation_return)


if __name__ == '__main__':
  main(*(sys.argv[1:] or ['runs/own_agent']))
