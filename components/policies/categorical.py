"""Categorical policy over discrete actions."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from repertory.components import distributions, interfaces, specs, types
from repertory.components.actions import discrete_actions
from repertory.components.runtime import random_streams


class CategoricalPolicy(interfaces.Policy):
  """Samples the index of an action from a network's logits.

  Each environment has its own random stream, as in `EpsilonGreedyPolicy`. The
  policy has no extras: it serves agents that need no log-probabilities.
  """

  def __init__(
    self,
    network: Callable[[types.Nest], tf.Tensor],
    actions: discrete_actions.DiscreteActions,
    seed: int,
    *,
    num_random_steps: int = 0,
    steps_done: int = 0,
    evaluation: bool = False,
  ):
    """Initializes the policy.

    Args:
      network: Maps observations `[B, ...]` to logits `[B, A]`.
      actions: Converts action indices to actions of the environment.
      seed: Seeds the random streams.
      num_random_steps: First steps of each environment, with uniformly random
        actions.
      steps_done: Steps that each environment already made, in earlier runs.
      evaluation: Whether to take the most probable action.
    """
    super().__init__()
    self._network = network
    self._distribution = distributions.Categorical(
      specs.DiscreteArray(actions.num_actions)
    )
    self._to_action = actions.to_action
    self._seed = seed
    self._num_random_steps = 0 if evaluation else num_random_steps
    self._steps_done = steps_done
    self._evaluation = evaluation

  def initial_state(self, environment_ids: Sequence[int]) -> types.Nest:
    return {
      'random': random_streams.initial_counters(self._seed, environment_ids),
      'steps': tf.fill([len(environment_ids)], self._steps_done),
    }

  def step(
    self, observation: types.Nest, state: types.Nest
  ) -> interfaces.PolicyOutput:
    logits = self._network(observation)  # [B, A]
    counters = state['random']
    if self._num_random_steps:
      is_random = state['steps'] < self._num_random_steps  # [B]
      logits = tf.where(is_random[:, None], 0.0, logits)
    if self._evaluation:
      number = self._distribution.mode(logits)  # [B]
    else:
      number, counters = self._distribution.sample(logits, counters)
    return interfaces.PolicyOutput(
      action=self._to_action(number),
      extras=(),
      state={'random': counters, 'steps': state['steps'] + 1},
    )
