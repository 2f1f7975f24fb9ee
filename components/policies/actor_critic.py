"""Policies of off-policy actor-critic agents."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from repertory.components import distributions, interfaces, specs, types
from repertory.components.actions import (
  action_masks,
  action_scaling,
  discrete_actions,
)
from repertory.components.distributions import categorical
from repertory.components.runtime import numpy_functions, random_streams


class _ActorCriticPolicy(interfaces.Policy):
  """Shared parts: random streams, and uniformly random first steps."""

  def __init__(
    self,
    network: Callable[[types.Nest], tf.Tensor],
    seed: int,
    *,
    num_random_steps: int = 0,
    steps_done: int = 0,
    evaluation: bool = False,
  ):
    """Initializes the policy.

    Args:
      network: Maps observations `[B, ...]` to parameters of actions.
      seed: Seeds the random streams.
      num_random_steps: First steps of each environment, with uniformly random
        actions.
      steps_done: Steps that each environment already made, in earlier runs.
      evaluation: Whether to act without random steps and without noise.
    """
    super().__init__()
    self._network = network
    self._seed = seed
    self._num_random_steps = 0 if evaluation else num_random_steps
    self._steps_done = steps_done
    self._evaluation = evaluation

  def initial_state(self, environment_ids: Sequence[int]) -> types.Nest:
    return {
      'random': random_streams.initial_counters(self._seed, environment_ids),
      'steps': tf.fill([len(environment_ids)], self._steps_done),
    }


class CategoricalPolicy(_ActorCriticPolicy):
  """Samples the index of an action from a network's logits."""

  def __init__(
    self,
    network: Callable[[types.Nest], tf.Tensor],
    actions: discrete_actions.DiscreteActions,
    seed: int,
    **settings: Any,
  ):
    """Takes a network from observations `[B, ...]` to logits `[B, A]`.

    In evaluation, the most probable action is taken. `settings` are
    `num_random_steps`, the first steps of each environment, which take random
    actions, `steps_done` in earlier runs, and `evaluation`.
    """
    super().__init__(network, seed, **settings)
    self._distribution = distributions.Categorical(
      specs.DiscreteArray(actions.num_actions)
    )
    self._to_action = actions.to_action

  def step(self, observation, state) -> interfaces.PolicyOutput:
    logits = self._network(observation)  # [B, A]
    counters = state['random']
    if self._num_random_steps:
      is_random = (state['steps'] < self._num_random_steps)[:, None]  # [B, 1]
      logits = tf.where(
        is_random & action_masks.is_allowed(logits), 0.0, logits
      )
    if self._evaluation:
      number = self._distribution.mode(logits)  # [B]
    else:
      number, counters = self._distribution.sample(logits, counters)
    return interfaces.PolicyOutput(
      action=self._to_action(number),
      extras=(),
      state={'random': counters, 'steps': state['steps'] + 1},
    )

  def in_numpy(self, weights: numpy_functions.Weights) -> Callable:
    """Returns the NumPy version of `step`, see `numpy_functions.find`."""
    network = numpy_functions.forward(self._network, weights)
    uniforms = None if self._evaluation else random_streams.NumpyUniforms()
    # Arrays, with which NumPy computes faster than with numbers.
    one = np.ones([1], np.int32)
    num_random_steps = one * self._num_random_steps

    def step(observation, state):
      counters, steps = state
      logits = network(observation)
      is_random = steps < num_random_steps
      if True in is_random.tolist():
        is_flat = is_random[:, None] & action_masks.is_allowed(logits)
        logits = np.where(is_flat, np.float32(0), logits)
      number, counters = categorical.choose_in_numpy(logits, counters, uniforms)
      return self._to_action(number), (), (counters, steps + one)

    return step


class ContinuousPolicy(_ActorCriticPolicy):
  """Chooses bounded actions from network outputs and Gaussian noise."""

  def __init__(
    self,
    network: Callable[[types.Nest], tf.Tensor],
    choose: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    scaling: action_scaling.ActionScaling,
    seed: int,
    *,
    noise_correlation: float = 0.0,
    **settings: Any,
  ):
    """Takes a network from observations `[B, ...]` to parameters `[B, P]`.

    `choose` maps these and Gaussian noise `[B, D]` to actions in [−1, 1],
    `[B, D]`, which `scaling` converts to actions of the environment. There is
    no noise in evaluation. `noise_correlation`, in [0, 1), is that of the noise
    of successive steps: a discrete Ornstein-Uhlenbeck process, see
    https://arxiv.org/abs/1509.02971, section 7. For `settings` see
    `CategoricalPolicy`.
    """
    super().__init__(network, seed, **settings)
    self._choose = choose
    self._scaling = scaling
    self._correlation = 0.0 if self._evaluation else noise_correlation

  def initial_state(self, environment_ids: Sequence[int]) -> types.Nest:
    state = super().initial_state(environment_ids)
    if not self._correlation:
      return state
    # Row by row: rounding may depend on the number of rows.
    rows = tf.split(state['random'], len(environment_ids))
    pairs = [random_streams.next_normals(r, self._scaling.size) for r in rows]
    noise, counters = (tf.concat(parts, axis=0) for parts in zip(*pairs))
    return {**state, 'random': counters, 'noise': noise}

  def step(self, observation, state) -> interfaces.PolicyOutput:
    parameters = self._network(observation)  # [B, P]
    size, counters = self._scaling.size, state['random']
    if self._evaluation:
      # The state is not even read for the batch size: otherwise an exported
      # model would take it as an input.
      noise = tf.zeros([tf.shape(parameters)[0], size])  # [B, D]
    else:
      noise, counters = random_streams.next_normals(counters, size)
    next_state = {'random': counters, 'steps': state['steps'] + 1}
    if self._correlation:
      share = (1 - self._correlation**2) ** 0.5  # Keeps the variance at 1.
      noise = self._correlation * state['noise'] + share * noise
      next_state['noise'] = noise
    action = self._choose(parameters, noise)  # [B, D]
    if self._num_random_steps:
      is_random = state['steps'] < self._num_random_steps  # [B]
      # 2 Φ(ε) − 1 of a normal number is uniform in [−1, 1].
      uniform = tf.math.erf(noise * 0.5**0.5)  # [B, D]
      action = tf.where(is_random[:, None], uniform, action)
    return interfaces.PolicyOutput(
      action=self._scaling.to_action(action),
      extras=(),
      state=next_state,
    )
