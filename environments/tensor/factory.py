"""Factory of tensor environments, and of host environments backed by them."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import dm_env
import numpy as np
import tensorflow as tf

from repertory.environments.batches import layout, vector_batch
from repertory.environments.batches.layout import Nest
from repertory.environments.rendering import rendering
from repertory.environments.tensor import environment as environment_lib
from repertory.environments.values.argument_checks import ArgumentError

_LAST = int(dm_env.StepType.LAST)


@dataclasses.dataclass(frozen=True)
class Factory:
  """Factory of a tensor environment, and of host environments backed by it.

  Serves as an experiment's `environment_factory`, in any topology. It can be
  pickled if `make` can be.

      tensor.Factory(functools.partial(MyEnvironment, size=7))

  Attributes:
    make: Makes the tensor environment; every call must return an equal one. A
      class will do.
  """

  make: Callable[[], environment_lib.TensorEnvironment]

  def __call__(self, seed: int) -> dm_env.Environment:
    """Makes one environment on the host, with a seed of at least 0."""
    return vector_batch.SingleSlot(TensorSource(self.make(), [seed]))

  def make_batch(self, seeds: Sequence[int]) -> vector_batch.VectorBatch:
    """Makes a batch on the host; each slot depends on its own seed alone."""
    return vector_batch.VectorBatch(TensorSource(self.make(), seeds))

  def make_tensor_environment(self) -> environment_lib.TensorEnvironment:
    """Makes the tensor environment itself, for compiled loops."""
    return self.make()


class TensorSource(vector_batch.VectorSource):
  """A tensor environment as a `vector_batch.VectorSource`.

  Its step is traced, but not compiled by XLA unless the environment requires
  it: so results equal those of a loop without XLA to the last bit, and it
  starts sooner. It runs on the CPU.
  """

  def __init__(
    self, environment: environment_lib.TensorEnvironment, seeds: Sequence[int]
  ):
    """Traces the step; each row depends on its own seed alone.

    Raises:
      ArgumentError: If there are no seeds, or if one is not valid.
      ValueError: If results of the environment do not match its specs.
    """
    if not len(seeds):
      raise ArgumentError('seeds', 'expected one for each slot, got none.')
    super().__init__(
      len(seeds),
      environment.observation_spec(),
      environment.action_spec(),
      environment.reward_spec(),
      environment.discount_spec(),
    )
    self._environment, self._seeds = environment, seeds
    self._observations = layout.NestLayout(self.observation_spec, 'observation')
    self._actions = layout.NestLayout(self.action_spec, '`actions`')
    with tf.device('CPU'):
      state = environment.initial_state(environment_lib.initial_counters(seeds))
      # Actions of a step that restarts all rows, which ignores them.
      self._ignored = [
        tf.zeros([self.batch_size, *spec.shape], spec.dtype)
        for spec in self._actions.specs
      ]
      # Flat leaves, because calls are faster without nests.
      self._state: list[tf.Tensor] = tf.nest.flatten(state)
      self._pack = functools.partial(tf.nest.pack_sequence_as, state)
      self._step = tf.function(
        self._step_flat, autograph=False
      ).get_concrete_function(
        *(
          tf.TensorSpec(leaf.shape, leaf.dtype)
          for leaf in (*self._state, *self._ignored)
        )
      )

  def _step_flat(self, *inputs: tf.Tensor) -> list[tf.Tensor]:
    num_leaves = len(self._state)
    action = self._actions.unflatten(inputs[num_leaves:])
    state, timestep = self._environment.step(
      self._pack(inputs[:num_leaves]), action
    )
    observation = self._observations.flatten(timestep.observation)
    return [*tf.nest.flatten(state), *timestep[:3], *observation]

  def __reduce__(self):
    """Pickles the state, but no traced functions."""
    state = [leaf.numpy() for leaf in self._state]
    return TensorSource, (self._environment, self._seeds), state

  def __setstate__(self, state: Sequence[np.ndarray]) -> None:
    with tf.device('CPU'):
      self._state = [tf.constant(leaf) for leaf in state]

  def reset(self) -> Nest:
    # The last leaf of a `State` marks the rows to restart.
    with tf.device('CPU'):
      self._state[-1] = tf.ones([self.batch_size], tf.bool)
    return self._advance(self._ignored)[-1]

  def step(self, actions, ended):
    del ended  # The state marks them.
    outputs = self._advance(self._actions.flatten(actions))
    step_types, rewards, discounts, observation = outputs
    finite = np.isfinite(rewards)
    if not finite.all():
      slot = int(np.argmin(finite))
      raise vector_batch.SlotError(
        slot, f'reward: expected a finite number, found {rewards[slot]}'
      )
    last = step_types == _LAST
    return vector_batch.StepResult(observation, rewards, discounts, last)

  def _advance(self, actions: Sequence[Any]) -> Sequence[Any]:
    """Steps all rows; returns the timestep as new arrays."""
    with tf.device('CPU'):
      outputs = self._step(*self._state, *map(tf.convert_to_tensor, actions))
    num_leaves = len(self._state)
    self._state = outputs[:num_leaves]
    arrays = [output.numpy() for output in outputs[num_leaves:]]
    return *arrays[:3], self._observations.unflatten(arrays[3:])

  def render(self, slots: Sequence[int]) -> rendering.Frames:
    core = self._pack(self._state).core
    with tf.device('CPU'):
      rows = [
        tf.nest.map_structure(lambda leaf, one=slot: leaf[one : one + 1], core)
        for slot in slots
      ]
      return [rendering.render(self._environment, row) for row in rows]

  @property
  def render_fps(self) -> float:
    """Frames per second of a row's video."""
    return rendering.rate(self._environment)
