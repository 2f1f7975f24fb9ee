"""Stochastic policy of actor-critic agents."""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from repertory.components import (
  distributions,
  interfaces,
  networks,
  specs,
  types,
)
from repertory.components.distributions import categorical
from repertory.components.runtime import numpy_functions, random_streams


class StochasticPolicy(interfaces.Policy):
  """Samples actions from the distribution that a network parameterizes.

  Its extras are `types.SequenceExtras`: for each step the sample, its
  log-probability under the behavior policy, and the recurrent state before the
  step. Each environment has its own random stream, as in
  `EpsilonGreedyPolicy`.
  """

  def __init__(
    self,
    network: networks.SequenceNetwork,
    distribution: distributions.Distribution,
    seed: int,
    *,
    evaluation: bool = False,
  ):
    """Initializes the policy.

    Args:
      network: Network that outputs `networks.ActorCriticOutput`.
      distribution: Action distribution that the network parameterizes.
      seed: Seeds the random streams.
      evaluation: Whether to take the most probable action.
    """
    super().__init__()
    self._network = network
    self._distribution = distribution
    self._seed = seed
    self._evaluation = evaluation

  def initial_state(self, environment_ids: Sequence[int]) -> types.Nest:
    return {
      'core': self._network.initial_state(len(environment_ids)),
      'random': random_streams.initial_counters(self._seed, environment_ids),
    }

  def reset_state(self, state: types.Nest, first: tf.Tensor) -> types.Nest:
    return {**state, 'core': networks.reset_where(first, state['core'])}

  def step(self, observation, state) -> interfaces.PolicyOutput:
    output, core_state = self._network.step(observation, state['core'])
    distribution, counters = self._distribution, state['random']
    if self._evaluation:
      sample = distribution.mode(output.parameters)
    else:
      sample, counters = distribution.sample(output.parameters, counters)
    return interfaces.PolicyOutput(
      action=distribution.to_action(sample),
      extras=types.SequenceExtras(
        step={
          'sample': sample,
          'log_prob': distribution.log_prob(output.parameters, sample),
        },
        state=state['core'],
      ),
      state={'core': core_state, 'random': counters},
    )

  def in_numpy(self, weights: numpy_functions.Weights) -> Callable:
    """Returns the NumPy version of `step`, see `numpy_functions.find`.

    Only a single discrete action without recurrent state has one.
    """
    distribution = self._distribution
    if type(distribution) is not distributions.Categorical:
      raise numpy_functions.NoNumpyError('the actions are not a single number.')
    network = numpy_functions.forward(self._network, weights)
    uniforms = None if self._evaluation else random_streams.NumpyUniforms()

    def step(observation, state):
      (counters,) = state
      logits = network(observation)
      sample, counters = categorical.choose_in_numpy(logits, counters, uniforms)
      log_prob = categorical.log_prob_in_numpy(logits, sample)
      action = distribution.to_action(sample)
      return action, (log_prob, sample), (counters,)

    return step


def stochastic_extras_spec(
  distribution: distributions.Distribution, core_state_spec: types.Nest
) -> types.SequenceExtras:
  """Returns the array specs of the extras of a `StochasticPolicy`.

  Args:
    distribution: The action distribution of the policy.
    core_state_spec: Array specs of the recurrent state, without a batch axis.
  """
  return types.SequenceExtras(
    step={
      'sample': distribution.sample_spec,
      'log_prob': specs.Array((), np.float32),
    },
    state=core_state_spec,
  )
