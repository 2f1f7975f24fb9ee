"""ε-greedy policies over action values."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from repertory.components import interfaces, networks, types
from repertory.components.actions import action_masks
from repertory.components.runtime import numpy_functions, random_streams


def epsilon_ladder(
  num_environments: int, base: float = 0.4, exponent: float = 7.0
) -> list[float]:
  """Returns the ε of each environment (Ape-X).

  ε_i = base^(1 + exponent · i / (N − 1)), see
  https://arxiv.org/abs/1803.00933, section 4.1. A single environment gets the
  middle of the ladder, i / (N − 1) = ½: with the defaults ε = 0.016.

  Args:
    num_environments: N, over all actors, at least 1.
    base: The largest ε, in (0, 1].
    exponent: Steepness of the ladder, at least 0.

  Returns:
    ε by environment id.
  """
  positions = [0.5]
  if num_environments > 1:
    positions = [i / (num_environments - 1) for i in range(num_environments)]
  return [base ** (1 + exponent * position) for position in positions]


class EpsilonGreedyPolicy(interfaces.Policy):
  """Takes a random action with probability ε, else the greedy one.

  Each environment has its own ε and random stream, so its actions are the same
  in every topology and do not depend on the rest of the batch.
  """

  def __init__(
    self,
    network: Callable[..., Any],
    epsilons: Sequence[float],
    seed: int,
    *,
    anneal_steps: int = 0,
    steps_done: int = 0,
    noise_size: int = 0,
    masked: bool = False,
    to_action: Callable[[Any], types.Nest] = lambda number: number,
  ):
    """Initializes the policy.

    Args:
      network: Maps observations `[B, ...]` to action values `[B, A]`.
      epsilons: ε by environment id, each in [0, 1].
      seed: Seeds the random streams.
      anneal_steps: Steps of an environment over which its ε decreases linearly
        from 1 to its final value (https://doi.org/10.1038/nature14236,
        methods).
      steps_done: Steps that each environment already made, in earlier runs.
      noise_size: K; above 0, a noisy network's second input is Gaussian noise
        `[B, K]`, new in each step, of each environment's own stream.
      masked: Whether the network masks actions, see `action_masks`. Random
        actions are uniform among the others.
      to_action: Converts action indices, int32 `[B]`, to the environment's
        actions, such as `DiscreteActions.to_action`; the identity by default.
    """
    super().__init__()
    if not all(0 <= epsilon <= 1 for epsilon in epsilons):
      raise ValueError(f'epsilons must be in [0, 1], got {list(epsilons)}.')
    self._network = network
    self._epsilons = tuple(epsilons)
    self._seed = seed
    self._anneal_steps = anneal_steps
    self._steps_done = steps_done
    self._noise_size = noise_size
    self._masked = masked
    self._to_action = to_action

  def initial_state(self, environment_ids: Sequence[int]) -> types.Nest:
    return {
      'epsilon': tf.constant(
        [self._epsilons[i] for i in environment_ids], tf.float32
      ),
      'random': random_streams.initial_counters(self._seed, environment_ids),
      'steps': tf.fill([len(environment_ids)], self._steps_done),
    }

  def describe(self, environment_ids: Sequence[int]) -> Mapping[str, Any]:
    return {
      'epsilons': [self._epsilons[i] for i in environment_ids],
      'anneal_steps': self._anneal_steps,
    }

  def step(self, observation, state) -> interfaces.PolicyOutput:
    if not self._noise_size:
      return self._choose(self._network(observation), state)
    noise, counters = random_streams.next_normals(
      state['random'], self._noise_size
    )  # [B, K], [B]
    values = self._network(observation, noise)  # [B, A]
    return self._choose(values, {**state, 'random': counters})

  def in_numpy(self, weights: numpy_functions.Weights) -> Callable:
    """Returns the NumPy version of `step`, see `numpy_functions.find`."""
    if self._noise_size:
      raise numpy_functions.NoNumpyError('the network is noisy.')
    network = numpy_functions.forward(self._network, weights)
    anneals = self._anneal_steps > 0
    explores = anneals or any(self._epsilons)
    draw_in_numpy = _draw_allowed if self._masked else _draw_any
    uniforms = random_streams.NumpyUniforms()
    # Arrays, with which NumPy computes faster than with numbers.
    one, one_step = np.ones([1], np.float32), np.ones([1], np.int32)
    anneal_steps = one * self._anneal_steps

    def step(observation, state):
      epsilon, counters, steps = state
      values = network(observation)
      number = values.argmax(-1).astype(np.int32)
      if explores:
        coin, draw, counters = uniforms(counters)
        current = epsilon
        if anneals:
          progress = np.minimum(steps.astype(np.float32) / anneal_steps, one)
          current = one + (epsilon - one) * progress
        is_random = coin < current
        if True in is_random.tolist():
          drawn = draw_in_numpy(values, draw)
          number = np.where(is_random, drawn.astype(np.int32), number)
      return self._to_action(number), (), (epsilon, counters, steps + one_step)

    return step

  def _choose(
    self, values: tf.Tensor, state: types.Nest
  ) -> interfaces.PolicyOutput:
    """Samples ε-greedy actions from action values `[B, A]`."""
    action = tf.argmax(values, axis=-1, output_type=tf.int32)  # [B]
    counters = state['random']
    if self._anneal_steps or any(self._epsilons):
      coin, draw, counters = random_streams.next_uniforms(counters)  # [B]
      random_action = self._draw(values, draw)
      action = tf.where(
        coin < self._annealed(state['epsilon'], state['steps']),
        tf.cast(random_action, tf.int32),
        action,
      )
    return interfaces.PolicyOutput(
      action=self._to_action(action),
      extras=(),
      state={
        'epsilon': state['epsilon'],
        'random': counters,
        'steps': state['steps'] + 1,
      },
    )

  def _draw(self, values: tf.Tensor, draw: tf.Tensor) -> tf.Tensor:
    """Returns random actions `[B]` for uniform numbers `[B]` in [0, 1)."""
    if not self._masked:
      num_actions = tf.cast(tf.shape(values)[-1], tf.float32)
      # A float32 just below 1 times A may round up to A.
      return tf.minimum(tf.floor(draw * num_actions), num_actions - 1)
    allowed = tf.cast(action_masks.is_allowed(values), tf.float32)
    ranks = tf.cumsum(allowed, axis=-1)  # [B, A], from 1.
    number = ranks[:, -1]  # [B]
    rank = tf.minimum(tf.floor(draw * number), number - 1)
    return tf.argmax(ranks > rank[:, None], axis=-1)

  def _annealed(self, epsilon: tf.Tensor, steps: tf.Tensor) -> tf.Tensor:
    if self._anneal_steps == 0:
      return epsilon
    progress = tf.cast(steps, tf.float32) / self._anneal_steps  # [B]
    return 1 + (epsilon - 1) * tf.minimum(progress, 1)  # [B]


def _draw_any(values: np.ndarray, draw: np.ndarray) -> np.ndarray:
  """Returns the result of `EpsilonGreedyPolicy._draw` without masks."""
  num_actions = np.float32(values.shape[-1])
  return np.minimum(np.floor(draw * num_actions), num_actions - 1)


def _draw_allowed(values: np.ndarray, draw: np.ndarray) -> np.ndarray:
  """Returns the result of `EpsilonGreedyPolicy._draw` with masks."""
  ranks = action_masks.is_allowed(values).cumsum(-1, np.float32)
  number = ranks[:, -1]
  rank = np.minimum(np.floor(draw * number), number - 1)
  return (ranks > rank[:, None]).argmax(-1)


class RecurrentEpsilonGreedyPolicy(EpsilonGreedyPolicy):
  """ε-greedy policy for a `SequenceNetwork` that outputs action values.

  Its extras are `types.SequenceExtras`: the recurrent state before each step.
  """

  _network: 'networks.SequenceNetwork'

  def initial_state(self, environment_ids: Sequence[int]) -> types.Nest:
    return {
      **super().initial_state(environment_ids),
      'core': self._network.initial_state(len(environment_ids)),
    }

  def reset_state(self, state: types.Nest, first: tf.Tensor) -> types.Nest:
    return {**state, 'core': networks.reset_where(first, state['core'])}

  def step(self, observation, state) -> interfaces.PolicyOutput:
    values, core_state = self._network.step(observation, state['core'])
    output = self._choose(values, state)
    return output._replace(
      extras=types.SequenceExtras(state=state['core']),
      state={**output.state, 'core': core_state},
    )
