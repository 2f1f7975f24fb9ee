"""Thin actor: an actor whose policy runs on an inference server.

Apart from `client`, because actors import TensorFlow.
"""

import dm_env
import numpy as np
import tree

from repertory.components import core, specs, types
from repertory.components.inference import client as client_lib


class ThinActor(core.Actor):
  """Streams timesteps to an inference server and receives its actions.

  It sends each step immediately, so that two of them, alternating between two
  environment batches, hide the server's latency behind the environments' time.
  """

  def __init__(
    self,
    client: client_lib.InferenceClient,
    spec: specs.EnvironmentSpec,
    batch_size: int,
  ):
    self._client = client
    # For environments whose episode has ended, and which ignore it.
    self._no_action = tree.map_structure(
      lambda leaf: np.zeros((batch_size, *leaf.shape), leaf.dtype), spec.actions
    )

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode in every slot; `timestep` is a batch, all FIRST."""
    if self._client.is_waiting:
      self._client.receive()  # For the abandoned episodes.
    self._client.send(timestep, start=True)

  def select_action(self, observation: types.Nest) -> types.Nest:
    """Returns the actions for the last observed timesteps."""
    del observation  # Already sent.
    if self._client.is_waiting:
      return self._client.receive()
    return self._no_action

  def observe(self, action: types.Nest, next_timestep: dm_env.TimeStep) -> None:
    """Sends a step of every slot; the server knows the actions."""
    del action
    self._client.send(next_timestep)

  def update(self, wait: bool = False) -> None:
    """Does nothing: the server updates the variables."""
    del wait
