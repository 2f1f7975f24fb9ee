"""Policies with random weights, whose actions depend on the observation."""

import numpy as np
import tensorflow as tf
import tree

from repertory.components import (
  distributions,
  interfaces,
  networks,
  policies,
  specs,
)


def fill(module_variables, seed=0):
  """Fills variables with random values of standard deviation 1."""
  random = np.random.default_rng(seed)
  for variable in module_variables:
    variable.assign(random.normal(size=variable.shape))


def make_epsilon_greedy(spec, num_environments, seed=7):
  """Makes a feed-forward policy with linear action values."""
  size = int(np.prod(spec.observations.shape))
  random = np.random.default_rng(0)
  weights = tf.constant(
    random.normal(size=(size, spec.actions.num_values)), tf.float32
  )
  return policies.EpsilonGreedyPolicy(
    lambda observation: tf.reshape(observation, [-1, size]) @ weights,
    policies.epsilon_ladder(num_environments),
    seed,
    anneal_steps=20,
  )


def _make_network(spec, head):
  network = networks.SequenceNetwork(
    networks.ObservationTorso(spec.observations, (6,)),
    networks.make_core('lstm', 5),
    head,
  )
  state = network.initial_state(1)
  network.step(tf.ones([1, *spec.observations.shape]), state)
  fill(network.trainable_variables)
  return network


def make_recurrent_epsilon_greedy(spec, num_environments, seed=7):
  """Makes a policy with an LSTM."""
  head = networks.make_value_head(spec.actions.num_values, False)
  return policies.RecurrentEpsilonGreedyPolicy(
    _make_network(spec, head),
    policies.epsilon_ladder(num_environments, 0.5, 1.0),
    seed,
  )


def make_stochastic(spec, num_environments, seed=7):
  """Makes a stochastic policy with an LSTM."""
  del num_environments
  distribution = distributions.make_distribution(spec.actions)
  head = networks.ActorCriticHead(distribution.num_parameters)
  return policies.StochasticPolicy(
    _make_network(spec, head), distribution, seed
  )


SPEC = specs.EnvironmentSpec(
  observations=specs.Array((3,), np.float32),
  actions=specs.DiscreteArray(4, np.int32),
  rewards=specs.Array((), np.float32),
  discounts=specs.BoundedArray((), np.float32, 0, 1),
)

MAKERS = {
  'epsilon_greedy': make_epsilon_greedy,
  'recurrent_epsilon_greedy': make_recurrent_epsilon_greedy,
  'stochastic': make_stochastic,
}


class RowByRow(interfaces.Policy):
  """Policy that computes each row of a batch separately.

  Results are then identical bit by bit in batches of any size: rounding of a
  row may depend on the batch.
  """

  def __init__(self, policy: interfaces.Policy):
    super().__init__()
    self._policy = policy

  def initial_state(self, environment_ids):
    return self._policy.initial_state(environment_ids)

  def reset_state(self, state, first):
    return self._policy.reset_state(state, first)

  def step(self, observation, state):
    size = tree.flatten(observation)[0].shape[0]
    rows = [
      self._policy.step(
        *tree.map_structure(lambda x, i=i: x[i : i + 1], (observation, state))
      )
      for i in range(size)
    ]
    return tree.map_structure(lambda *leaves: tf.concat(leaves, 0), *rows)


def row_by_row(builder_class: type) -> type:
  """Returns a subclass of a builder whose policies compute row by row."""

  class Builder(builder_class):
    def make_policy(self, network, acting):
      return RowByRow(super().make_policy(network, acting))

  return Builder
