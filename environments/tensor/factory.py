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

  Its functions are traced, but not compiled by XLA unless the environment
  requires it: so results equal those of a loop without XLA to the last bit, and
  it starts sooner. They run on the CPU.
  """

  def __init__(
    self, environment: environment_lib.TensorEnvironment, seeds: Sequence[int]
  ):
    """Traces the functions; each row depends on its own seed alone.

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
    self._environment = environment
    self._observations = layout.NestLayout(
      environment.observation_spec(), 'observation'
    )
    self._actions = layout.NestLayout(environment.action_spec(), '`actions`')
    with tf.device('CPU'):
      state = environment.initial_state(environment_lib.initial_counters(seeds))
      self._trace(state)
    # Flat leaves, because calls are faster without nests.
    self._state: list[tf.Tensor] = tf.nest.flatten(state)

  def __getstate__(self) -> dict[str, Any]:
    """Leaves out traced functions, which cannot be pickled."""
    state = dict(vars(self))
    del state['_reset'], state['_step'], state['_pack']
    state['_state'] = [leaf.numpy() for leaf in self._state]
    return state

  def __setstate__(self, state: dict[str, Any]) -> None:
    vars(self).update(state)
    with tf.device('CPU'):
      self._state = [tf.constant(leaf) for leaf in self._state]
      like = self._environment.initial_state(
        tf.zeros([self.batch_size], tf.uint64)
      )
      self._trace(tf.nest.pack_sequence_as(like, self._state))

  def _trace(self, state: environment_lib.State) -> None:
    leaves = [
      tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in tf.nest.flatten(state)
    ]
    actions = [
      tf.TensorSpec([self.batch_size, *spec.shape], spec.dtype)
      for spec in self._actions.specs
    ]
    num_leaves = len(leaves)
    self._pack = functools.partial(tf.nest.pack_sequence_as, state)

    def flatten(state, timestep):
      observation = self._observations.flatten(timestep.observation)
      return [*tf.nest.flatten(state), *timestep[:3], *observation]

    def reset(*inputs):
      return flatten(*self._environment.reset(self._pack(inputs)))

    def step(*inputs):
      before = self._pack(inputs[:num_leaves])
      action = self._actions.unflatten(inputs[num_leaves:])
      return flatten(*self._environment.step(before, action))

    self._reset, self._step = (
      tf.function(function, autograph=False).get_concrete_function(*inputs)
      for function, inputs in ((reset, leaves), (step, [*leaves, *actions]))
    )

  def reset(self) -> Nest:
    with tf.device('CPU'):
      outputs = self._reset(*self._state)
    return self._read(outputs)[-1]

  def step(
    self, actions: Nest, ended: np.ndarray | None
  ) -> vector_batch.StepResult:
    del ended  # The state marks them.
    with tf.device('CPU'):
      leaves = map(tf.constant, self._actions.flatten(actions))
      outputs = self._step(*self._state, *leaves)
    step_types, rewards, discounts, observation = self._read(outputs)
    finite = np.isfinite(rewards)
    if not finite.all():
      slot = int(np.argmin(finite))
      raise vector_batch.SlotError(
        slot, f'reward: expected a finite number, found {rewards[slot]}'
      )
    return vector_batch.StepResult(
      observation, rewards, discounts, step_types == _LAST
    )

  def render(self, slots: Sequence[int]) -> rendering.Frames:
    state = self._pack(self._state)

    def draw(slot: int) -> np.ndarray:
      row = tf.nest.map_structure(lambda leaf: leaf[slot : slot + 1], state)
      return rendering.render(self._environment, row.core)

    with tf.device('CPU'):
      return [draw(slot) for slot in slots]

  @property
  def render_fps(self) -> float:
    """Frames per second of a row's video."""
    return rendering.rate(self._environment)

  def _read(self, outputs):
    """Stores the state and returns the timestep as new arrays."""
    num_leaves = len(self._state)
    self._state = outputs[:num_leaves]
    arrays = [output.numpy() for output in outputs[num_leaves:]]
    return *arrays[:3], self._observations.unflatten(arrays[3:])
