"""Policies outside of runs, for any number of rows."""

import functools
from collections.abc import Callable
from typing import Any

import dm_env
import numpy as np
import tensorflow as tf
import tree

from repertory.components import interfaces, specs, types
from repertory.components.runtime import compilation, nests, numpy_functions

_FIRST, _MID = int(dm_env.StepType.FIRST), int(dm_env.StepType.MID)


class InitialStates:
  """Assigns environments' initial states to rows, with distinct random streams.

  Row r gets the settings of environment r mod N. So there may be more rows than
  a run has environments.
  """

  def __init__(
    self,
    make_policy: Callable[[int], interfaces.Policy],
    num_environments: int,
    seed: int,
  ):
    """Stores the arguments; no policy is created yet.

    Args:
      make_policy: Maps a seed to a policy; policies differ in nothing else.
      num_environments: N, number of environments of the policies.
      seed: Seed of all random numbers.
    """
    self._make_policy = make_policy
    self._num_environments = num_environments
    self._seed = seed

  def nest(self) -> types.Nest:
    """Returns the state of one row, `[1, ...]`, in the policy's structure."""
    return self._of_round(0, 1)

  def leaves(self, num_rows: int) -> list[np.ndarray]:
    """Returns the leaves of the first rows, `[num_rows, ...]` each."""
    size = self._num_environments
    rounds = [
      tree.flatten(self._of_round(start // size, min(size, num_rows - start)))
      for start in range(0, num_rows, size)
    ]
    return [np.concatenate(parts) for parts in zip(*rounds)]

  def _of_round(self, index: int, num_rows: int) -> types.Nest:
    entropy = np.random.SeedSequence([self._seed, index])
    seed = int(entropy.generate_state(1)[0] >> 1)
    return self._make_policy(seed).initial_state(range(num_rows))


class PolicyRows:
  """Stores the policy's state of each row between calls.

  All rows begin an episode in their first call, and after `begin`. A single row
  has a compiled function of its own, which NumPy runs if it can; all
  other batch sizes share one.

  Attributes:
    has_memory: Whether earlier observations may affect an action.
  """

  def __init__(
    self,
    policy: interfaces.Policy,
    observation_spec: types.Nest,
    initial_states: InitialStates,
  ):
    """Compiles the policy for one row.

    Args:
      policy: The policy; its variables stay fixed.
      observation_spec: Nest of array specs, without a batch axis.
      initial_states: Initial states of the policy.
    """
    self._policy = policy
    self._observation_spec = observation_spec
    self._initial_states = initial_states
    state = initial_states.nest()
    self._state_spec = compilation.specs_of(state)
    reset = policy.reset_state(state, tf.constant([True]))
    pairs = zip(tree.flatten(state), tree.flatten(reset))
    self.has_memory = any(before is not after for before, after in pairs)
    self._compile = functools.cache(self._compile_for)
    self._compiled: Any = None
    self._compile(1)
    self._state: list[np.ndarray] = []  # [B, ...]
    self._step_type = np.zeros([0], np.int32)  # [B]

  @property
  def first(self) -> np.ndarray:
    """Whether a row begins an episode in the next call, bool `[B]`."""
    return self._step_type == _FIRST

  @functools.cached_property
  def _unflatten(self) -> nests.Unflattener:
    """Unflattener of actions, known after the first step."""
    return nests.Unflattener(self._compiled.output_structure[0])

  def resize(self, num_rows: int) -> None:
    """Sets the number of rows: the first ones stay, others are new."""
    num_kept = min(num_rows, len(self._step_type))
    leaves = self._initial_states.leaves(num_rows)
    for leaf, old in zip(leaves, self._state):
      leaf[:num_kept] = old[:num_kept]
    self._state = leaves
    step_type = np.full([num_rows], _FIRST, np.int32)
    step_type[:num_kept] = self._step_type[:num_kept]
    self._step_type = step_type

  def begin(self, rows: np.ndarray | slice = slice(None)) -> None:
    """Makes rows begin an episode in the next call."""
    self._step_type[rows] = _FIRST

  def act(self, *observation: np.ndarray) -> types.Nest:
    """Selects an action for each row.

    Args:
      *observation: Its leaves, `[B, ...]` each; B as set by `resize`.

    Returns:
      The action, `[B, ...]`.
    """
    num_rows = len(self._step_type)
    function = self._compile(1 if num_rows == 1 else None)
    leaves = function(*observation, self._step_type, *self._state)
    arrays = [np.asarray(leaf) for leaf in leaves]
    num_actions = len(arrays) - len(self._state)
    self._state = arrays[num_actions:]
    # A new array, because NumPy may still refer to the old one.
    self._step_type = np.full([num_rows], _MID, np.int32)
    return self._unflatten(arrays[:num_actions])

  def _compile_for(self, size: int | None) -> Callable[..., list[Any]]:
    """Compiles the policy for `size` rows; None for any number."""

    def act(observation, step_type, state):
      output = self._policy.act(observation, step_type, state)
      return output.action, output.state

    compiled = compilation.CompiledFunction(
      act,
      (
        specs.tensor_spec(self._observation_spec, size),
        tf.TensorSpec([size], tf.int32),
        tree.map_structure(
          lambda leaf: tf.TensorSpec([size, *leaf.shape[1:]], leaf.dtype),
          self._state_spec,
        ),
      ),
      jit_compile=False,
      in_caller=True,
    )
    self._compiled = compiled
    if size is None:
      return compiled
    found = numpy_functions.find(
      self._policy, compiled, size, lambda: 0, with_extras=False
    )
    return found or compiled
