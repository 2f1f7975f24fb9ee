"""Policies for bounded continuous actions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from repertory.components import interfaces, types
from repertory.components.actions import action_scaling
from repertory.components.runtime import random_streams


class ContinuousPolicy(interfaces.Policy):
  """Chooses bounded actions from network outputs and Gaussian noise.

  Each environment has its own noise stream, as in `EpsilonGreedyPolicy`.
  """

  def __init__(
    self,
    network: Callable[[types.Nest], tf.Tensor],
    choose: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    scaling: action_scaling.ActionScaling,
    seed: int,
    *,
    num_random_steps: int = 0,
    steps_done: int = 0,
    evaluation: bool = False,
  ):
    """Initializes the policy.

    Args:
      network: Maps observations `[B, ...]` to parameters `[B, P]`.
      choose: Maps parameters `[B, P]` and Gaussian noise `[B, D]` to actions in
        [−1, 1], `[B, D]`.
      scaling: Converts them to actions of the environment.
      seed: Seeds the random streams.
      num_random_steps: First steps of each environment, with uniformly random
        actions within the bounds.
      steps_done: Steps that each environment already made, in earlier runs.
      evaluation: Whether to act without random steps and without noise.
    """
    super().__init__()
    self._network = network
    self._choose = choose
    self._scaling = scaling
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
    parameters = self._network(observation)  # [B, P]
    noise, counters = self._draw(parameters, state['random'])  # [B, D], [B]
    action = self._choose(parameters, noise)  # [B, D]
    if self._num_random_steps:
      is_random = state['steps'] < self._num_random_steps  # [B]
      # 2 Φ(ε) − 1 of a normal number is uniform in [−1, 1].
      uniform = tf.math.erf(noise * 0.5**0.5)  # [B, D]
      action = tf.where(is_random[:, None], uniform, action)
    return interfaces.PolicyOutput(
      action=self._scaling.to_action(action),
      extras=(),
      state={'random': counters, 'steps': state['steps'] + 1},
    )

  def _draw(
    self, parameters: tf.Tensor, counters: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    size = self._scaling.size
    if self._evaluation:
      # The state is not even read for the batch size: otherwise an exported
      # model would take it as an input.
      return tf.zeros([tf.shape(parameters)[0], size]), counters
    return random_streams.next_normals(counters, size)

  def describe(self, environment_ids: Sequence[int]) -> Mapping[str, Any]:
    if not self._num_random_steps:
      return {}
    return {'num_random_steps': self._num_random_steps}
