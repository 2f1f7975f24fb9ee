"""Wire format between thin actors and an inference server.

After the handshake, which establishes specs, environment ids and the actor's
generation, all payloads have sizes that both sides know. No specs, names or ids
are repeated. Needs no TensorFlow.
"""

import dm_env
import numpy as np
import tree

from repertory.components import specs
from repertory.components.network import frames

PROTOCOL = 3

# Kinds of frames, besides those of a handshake. From the actor:
START = 2  # Timesteps, all FIRST.
STEP = 3  # Timesteps of the environments' next step.
BYE = 4  # Done; all experience is to be written to replay.
# From the server:
ACTION = 6  # Actions for the last timesteps.
GOODBYE = 7  # All experience is written.

_LAST = int(dm_env.StepType.LAST)


def is_answerless(step_types: np.ndarray) -> bool:
  """Returns whether no row needs an action: all episodes have ended."""
  # The first row usually decides.
  return step_types.item(0) == _LAST and int(step_types.min()) == _LAST


def timestep_leaves(spec: specs.EnvironmentSpec) -> list[frames.LeafSpec]:
  """Returns the leaf specs of a timestep of one environment."""
  leaves = [spec.rewards, spec.discounts, *tree.flatten(spec.observations)]
  return [((), np.dtype(np.int32)), *map(_leaf_spec, leaves)]


def action_leaves(spec: specs.EnvironmentSpec) -> list[frames.LeafSpec]:
  """Returns the leaf specs of an action."""
  return list(map(_leaf_spec, tree.flatten(spec.actions)))


def _leaf_spec(leaf: specs.Array) -> frames.LeafSpec:
  return tuple(leaf.shape), np.dtype(leaf.dtype)
