"""An actor that holds its policy."""

from collections.abc import Sequence

import dm_env
import numpy as np
import tensorflow as tf
import tree

from repertory.components import core, specs, types
from repertory.components.variables import client as variables_client


class PolicyActor(core.Actor):
  """Acts for an environment batch with one compiled call a step."""

  def __init__(
    self,
    policy: core.Policy,
    observation_spec: types.Nest,
    environment_ids: Sequence[int],
    *,
    adder: core.Adder | None = None,
    variable_client: variables_client.VariableClient | None = None,
    jit_compile: bool = False,
  ):
    """Compiles the policy.

    Args:
      policy: Chooses the actions.
      observation_spec: Nest of array specs, without a batch axis.
      environment_ids: Of the slots of the environment batch, in order.
      adder: Takes what happened; None to forget it.
      variable_client: Keeps the policy's variables fresh; None where they are
        the learner's own.
      jit_compile: Whether to compile with XLA: faster for small networks.
    """
    self._batch_size = len(environment_ids)
    self._adder = adder
    self._variable_client = variable_client
    self._state = policy.initial_state(environment_ids)
    self._first = np.ones([self._batch_size], np.bool_)
    self._extras: types.Nest = ()
    self._policy = policy

    def act(observation, first, state):
      return policy.step(observation, policy.reset_state(state, first))

    self._act = tf.function(act, jit_compile=jit_compile).get_concrete_function(
      specs.tensor_spec(observation_spec, self._batch_size),
      tf.TensorSpec([self._batch_size], tf.bool),
      tree.map_structure(
        lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), self._state
      ),
    )

  def select_action(self, observation: types.Nest) -> types.Nest:
    """Maps observations `[B, ...]` to actions `[B, ...]`."""
    output = self._act(
      tree.map_structure(tf.convert_to_tensor, observation),
      tf.convert_to_tensor(self._first),
      self._state,
    )
    self._state = output.state
    self._extras = tree.map_structure(lambda leaf: leaf.numpy(), output.extras)
    return tree.map_structure(lambda leaf: leaf.numpy(), output.action)

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode in every slot; `timestep` is a batch, all FIRST."""
    self._first = np.ones([self._batch_size], np.bool_)
    if self._adder is not None:
      self._adder.add_first(timestep)

  def observe(self, action: types.Nest, next_timestep: dm_env.TimeStep) -> None:
    """Hands a step of every slot to the adder."""
    self._first = next_timestep.step_type == dm_env.StepType.FIRST
    if self._adder is not None:
      self._adder.add(action, next_timestep, self._extras)

  def update(self, wait: bool = False) -> None:
    """Looks for fresh variables."""
    if self._variable_client is not None:
      self._variable_client.update(wait)
