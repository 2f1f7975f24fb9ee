"""Actor with a local policy, and the adapter of actors to one environment."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import dm_env
import numpy as np
import tensorflow as tf
import tree

from repertory.components import core, interfaces, specs, types
from repertory.components.runtime import compilation, nests, numpy_functions
from repertory.components.variables import variable_client


class PolicyActor(core.Actor):
  """Acts in an environment batch, with one compiled policy call per step.

  Attributes:
    runs_in_numpy: Whether NumPy runs the policy.
  """

  def __init__(
    self,
    policy: interfaces.Policy,
    observation_spec: types.Nest,
    environment_ids: Sequence[int],
    *,
    adder: core.Adder | None = None,
    variables: variable_client.VariableClient | None = None,
    jit_compile: bool = False,
    in_numpy: bool = False,
  ):
    """Compiles the policy.

    Args:
      policy: The policy.
      observation_spec: Nest of array specs, without a batch axis.
      environment_ids: Id of the environment in each slot.
      adder: Adder for the experience; None to discard it.
      variables: Client that refreshes the policy's variables; None if other
        code does, or if they never change.
      jit_compile: Whether XLA may be used, see `compilation.compile_policy`.
      in_numpy: Whether NumPy runs the policy if it can, see
        `numpy_functions`; it requires `variables`.
    """
    self._batch_size = len(environment_ids)
    self._adder = adder
    self._variables = variables
    state = policy.initial_state(environment_ids)
    self._state = [np.asarray(leaf) for leaf in tree.flatten(state)]  # [B, ...]
    self._step_type = self._all_first()
    self._extras: types.Nest = ()

    def act(observation, step_type, state):
      output = policy.act(observation, step_type, state)
      return output.action, output.extras, output.state

    self._compiled = compilation.compile_policy(
      act,
      (
        specs.tensor_spec(observation_spec, self._batch_size),
        tf.TensorSpec([self._batch_size], tf.int32),
        compilation.specs_of(state),
      ),
      state,
      jit_compile,
    )
    self._act: Any = self._compiled
    self.runs_in_numpy = False
    if in_numpy and variables is not None:
      found = numpy_functions.find(
        policy, self._compiled, self._batch_size, lambda: variables.version
      )
      self._act, self.runs_in_numpy = found or self._act, found is not None

  @functools.cached_property
  def _unflatten(self) -> nests.Unflattener:
    """Unflattener of action and extras, known after the first step."""
    return nests.Unflattener(self._compiled.output_structure[:2])

  def select_action(self, observation: types.Nest) -> types.Nest:
    """Maps observations `[B, ...]` to actions `[B, ...]`."""
    leaves = self._act(
      *map(np.asarray, tree.flatten(observation)),
      self._step_type,
      *self._state,
    )
    num_outputs = len(leaves) - len(self._state)
    self._state = leaves[num_outputs:]
    arrays = leaves[:num_outputs]
    if not self.runs_in_numpy:
      arrays = [leaf.numpy() for leaf in arrays]
    action, self._extras = self._unflatten(arrays)
    return action

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode in every slot; `timestep` is a batch, all FIRST."""
    self._step_type = self._all_first()
    if self._adder is not None:
      self._adder.add_first(timestep)

  def observe(self, action: types.Nest, next_timestep: dm_env.TimeStep) -> None:
    """Passes a step of every slot to the adder."""
    self._step_type = np.asarray(next_timestep.step_type, np.int32)
    if self._adder is not None:
      self._adder.add(action, next_timestep, self._extras)

  def _all_first(self) -> np.ndarray:
    return np.full([self._batch_size], dm_env.StepType.FIRST, np.int32)

  def save(self) -> dict[str, Any]:
    """Returns the policy's state between two steps, without its variables.

    It can be pickled.
    """
    return {
      'state': [np.asarray(leaf) for leaf in self._state],
      'step_type': self._step_type,
    }

  def restore(self, state: Mapping[str, Any]) -> None:
    """Resumes from the result of `save`, of an equally constructed actor."""
    self._state = state['state']
    self._step_type = state['step_type']

  def update(self, wait: bool = False) -> None:
    """Fetches new variables."""
    if self._variables is not None:
      self._variables.update(wait)


class Unbatched(core.Actor):
  """Adapts a batched actor to one environment without a batch axis.

  The result can run in `acme.EnvironmentLoop`.
  """

  def __init__(self, actor: core.Actor):
    """Stores an actor for batches of one."""
    self._actor = actor

  def select_action(self, observation: types.Nest) -> types.Nest:
    action = self._actor.select_action(_add_axis(observation))
    return tree.map_structure(lambda leaf: leaf[0], action)

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    self._actor.observe_first(_batch_of_one(timestep))

  def observe(self, action: types.Nest, next_timestep: dm_env.TimeStep) -> None:
    self._actor.observe(_add_axis(action), _batch_of_one(next_timestep))

  def update(self, wait: bool = False) -> None:
    self._actor.update(wait)


def _add_axis(nest: types.Nest) -> types.Nest:
  return tree.map_structure(lambda leaf: np.asarray(leaf)[None], nest)


def _batch_of_one(timestep: dm_env.TimeStep) -> dm_env.TimeStep:
  """Adds the batch axis; the first timestep's None become 0 and 1."""
  is_first = timestep.first()
  return dm_env.TimeStep(
    step_type=np.asarray([timestep.step_type], np.int32),
    reward=np.asarray([0 if is_first else timestep.reward], np.float32),
    discount=np.asarray([1 if is_first else timestep.discount], np.float32),
    observation=_add_axis(timestep.observation),
  )
