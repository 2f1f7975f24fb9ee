"""Trained policies for inference."""

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import dm_env
import numpy as np
import tensorflow as tf
import tree

from repertory.agents.interface import builder as builder_lib
from repertory.components import core, interfaces, specs, types
from repertory.components.actors import saved_model
from repertory.components.runtime import compilation, nests, numpy_functions
from repertory.environments.batches import layout
from repertory.environments.values import argument_checks, casting
from repertory.launch.experiments import directories
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.trained import loading

_FIRST, _MID = int(dm_env.StepType.FIRST), int(dm_env.StepType.MID)


def load_policy(
  run: str | os.PathLike[str] | experiment_lib.Experiment,
  *,
  best: bool = False,
  explore: bool = False,
  seed: int = 0,
  trust: bool = False,
) -> 'TrainedPolicy':
  """Loads a trained policy; writes nothing.

    policy = launch.load_policy('runs/catch')
    action = policy.act(observation)

  Args:
    run: Directory of a run whose agent and environment are registered; or its
      experiment, for any agent and environment.
    best: Whether to load the policy with the best evaluation return during
      training, instead of the newest.
    explore: Whether to use the behavior policy of training, instead of the
      evaluation policy.
    seed: Seed of action sampling. Most evaluation policies are deterministic.
    trust: Whether to import modules named in the checkpoint, such as
      'my_module:MyBuilder', which runs their code.

  Raises:
    ValueError: If there is no checkpoint, or it belongs to another experiment
      or names an untrusted module.
  """
  return TrainedPolicy(loading.read(run, best, trust), explore, seed)


class TrainedPolicy:
  """Trained policy for one environment or a batch of environments.

  It keeps the recurrent state of agents that have one between calls, so call
  `reset` at the start of each episode. Not thread-safe.

  Attributes:
    agent: The agent's name.
    environment: The environment's name.
    steps: Environment steps of training.
    learner_steps: Learner steps of training.
    checkpoint: Folder of the checkpoint.
    spec: Specs of observations, actions and rewards.
    has_memory: Whether an action may depend on more than the observation.
  """

  def __init__(
    self, trained: loading.Trained, explore: bool = False, seed: int = 0
  ):
    """Prepares the policy; see `load_policy`."""
    self.agent, self.environment = trained.agent, trained.environment
    self.steps = trained.counts['steps']
    self.learner_steps = trained.counts['learner_steps']
    self.checkpoint = trained.checkpoint.path
    self.spec = trained.original_spec
    # Evaluation policies do not depend on the number of environments.
    self._num_environments = saved_model.MAX_DIFFERING_ROWS
    if explore:
      self._num_environments = trained.num_environments
    self._trained, self._evaluates, self._seed = trained, not explore, seed
    self._policy = self._make_policy(seed)
    state = self._policy.initial_state(range(1))
    self._state_spec = compilation.specs_of(state)
    reset = self._policy.reset_state(state, tf.constant([True]))
    pairs = zip(tree.flatten(state), tree.flatten(reset))
    # Whether previous actions and rewards are observed.
    self._looks_back = trained.builder.observes_previous_action_and_reward
    self.has_memory = self._looks_back or any(
      old is not new for old, new in pairs
    )
    self._layout = layout.NestLayout(self.spec.observations, 'observation')
    self._checks = [
      layout.make_range_check(path, spec, 'row')
      for path, spec in zip(self._layout.paths, self._layout.specs)
    ]
    # By batch size: 1, and None for all others.
    self._functions: dict[int | None, Any] = {1: self._compile(1)}
    self._state: list[np.ndarray] = []  # [B, ...]
    self._actions: list[np.ndarray] = []  # Of the last step, [B, ...].
    self._step_type = np.zeros([0], np.int32)  # [B]
    self._num_rows = 0  # 0 if the next call may change it.

  def __repr__(self) -> str:
    return (
      f'<policy of {self.agent} on {self.environment}, after {self.steps} '
      f'steps and {self.learner_steps} updates>'
    )

  def act(
    self, observation: types.Nest, reward: np.ndarray | float | None = None
  ) -> types.Nest:
    """Selects an action, or one for each row of a batch.

    Args:
      observation: A single observation as in the spec, or a batch `[B, ...]`.
        Row b must be the same environment in each call.
      reward: Reward of the last action of each row, `[B]`, or a number.
        Required from the second step of an episode on by agents that observe
        it; ignored by others.

    Returns:
      The action as in the spec, or a batch `[B, ...]`.

    Raises:
      ValueError: If the observation does not match the spec, a required reward
        is missing, or the number of rows changes although the policy has a
        memory.
    """
    leaves, is_batch = self._flatten(observation)
    num_rows = len(leaves[0])
    if num_rows != self._num_rows:
      self._resize(num_rows)
    if self._looks_back:
      leaves += self._look_back(reward)
    size = 1 if num_rows == 1 else None
    if size not in self._functions:
      self._functions[size] = self._compile(size)
    outputs = self._functions[size](*leaves, self._step_type, *self._state)
    arrays = [np.asarray(leaf) for leaf in outputs]
    num_actions = len(arrays) - len(self._state)
    self._state = arrays[num_actions:]
    # A new array, because NumPy may still refer to the old one.
    self._step_type = np.full([num_rows], _MID, np.int32)
    action = self._unflatten(arrays[:num_actions])
    if self._looks_back:
      self._actions = [np.array(leaf) for leaf in tree.flatten(action)]
    if is_batch:
      return action
    return tree.map_structure(lambda leaf: leaf[0], action)

  def reset(self, rows: Sequence[int] | np.ndarray | None = None) -> None:
    """Starts new episodes with the next observation.

    Args:
      rows: Indices of rows, or a mask `[B]`. None for all; then the number of
        rows may change.

    Raises:
      ValueError: If there are no such rows.
    """
    if rows is None:
      self._step_type[:] = _FIRST
      self._num_rows = 0
      return
    chosen = np.asarray(rows)
    try:
      if chosen.size:
        self._step_type[chosen] = _FIRST
    except IndexError as error:
      raise ValueError(
        f'rows: expected indices below {self._num_rows}, the number of rows in '
        f'the last call, or a mask of that length; found {rows!r}.'
      ) from error

  def export_saved_model(self, path: str) -> None:
    """Exports the policy as a SavedModel, which runs without this package.

    Its signature 'serving_default' maps observation and state to action and
    next state, `[B, ...]` each, for any B. If there is a state, the signature
    'initial_state' maps 'batch_size' to the initial state; insert a row of it
    at the start of an episode. Leaves of nests are named by their paths, as in
    'observation_camera'. Agents that observe them also take 'previous_action'
    and 'previous_reward'.

    Args:
      path: Folder to write, which must be new or empty.

    Raises:
      ValueError: If the folder is not empty.
      OSError: If it cannot be written; partial output is removed.
    """
    directories.check_new(path)
    inner = self._trained.spec.observations
    root = () if self._looks_back else ('observation',)
    saved_model.export(
      self._policy,
      inner,
      saved_model.name_leaves(inner, *root),
      self._initial_leaves,
      path,
    )

  def _resize(self, num_rows: int) -> None:
    if self._num_rows and self.has_memory:
      raise ValueError(
        f'observation: expected {self._num_rows} rows, as before, found '
        f'{num_rows}: the policy has a memory of each row. Call `reset` first.'
      )
    # The first rows stay, and others begin an episode.
    num_kept = min(num_rows, len(self._step_type))
    leaves = self._initial_leaves(num_rows)
    for leaf, old in zip(leaves, self._state):
      leaf[:num_kept] = old[:num_kept]
    self._state = leaves
    step_type = np.full([num_rows], _FIRST, np.int32)
    step_type[:num_kept] = self._step_type[:num_kept]
    self._step_type = step_type
    self._actions = [
      np.empty((num_rows, *one.shape), one.dtype)
      for one in tree.flatten(self.spec.actions)
    ]
    self._num_rows = num_rows

  def _flatten(self, observation: types.Nest) -> tuple[list[np.ndarray], bool]:
    """Checks an observation, or a batch of them.

    Numbers may have a wider type than the spec if they fit, such as float64 for
    float32.

    Returns:
      The leaves `[B, ...]` in the order of `tree`, and whether there was a
      batch axis; if not, B is 1.
    """
    leaves = self._layout.flatten(observation)
    first, spec = leaves[0], self._layout.specs[0]
    # Lists are refused below.
    is_batch = not isinstance(first, (list, tuple)) and (
      np.ndim(first) == len(spec.shape) + 1
    )
    rows = (len(first),) if is_batch else ()
    if rows == (0,):
      raise ValueError('observation: expected at least one row, found none.')
    arrays = []
    for leaf, spec, path, check in zip(
      leaves, self._layout.specs, self._layout.paths, self._checks
    ):
      try:
        array = casting.cast(leaf, (*rows, *spec.shape), np.dtype(spec.dtype))
      except ValueError as error:
        batch = ', '.join(map(str, ['B', *spec.shape]))
        raise ValueError(
          f'{path}: {error}. A single observation has shape {spec.shape}; in a '
          f'batch, all leaves have a batch axis, here ({batch}).'
        ) from error
      arrays.append(array if is_batch else array[None])
      if check is not None:
        check(arrays[-1])
    return tree.flatten(self._layout.unflatten(arrays)), is_batch

  def _look_back(self, reward: np.ndarray | float | None) -> list[np.ndarray]:
    """Returns the leaves of previous actions and rewards, `[B, ...]`.

    Rewards are ignored where an episode starts.
    """
    first = self._step_type == _FIRST
    dtype = np.dtype(self.spec.rewards.dtype)
    for array, spec in zip(self._actions, tree.flatten(self.spec.actions)):
      array[first] = layout.make_initial_action(spec)
    if first.all():
      return [*self._actions, np.zeros(first.shape, dtype)]
    if reward is None:
      raise ValueError(
        'reward: expected the reward of the last action, found none: this '
        'agent observes it. Call `reset` at the start of an episode.'
      )
    if np.ndim(reward) == 0 and len(first) == 1:
      reward = np.reshape(reward, [1])
    try:
      rewards = casting.cast(reward, first.shape, dtype)
    except ValueError as error:
      raise ValueError(f'reward: {error}, a number for each row.') from error
    return [*self._actions, np.where(first, dtype.type(0), rewards)]

  def _make_policy(self, seed: int) -> interfaces.Policy:
    acting = builder_lib.Acting(
      self._trained.spec,
      self._num_environments,
      seed,
      self._trained.steps_per_environment,
      evaluation=self._evaluates,
    )
    return self._trained.builder.make_policy(self._trained.network, acting)

  def _initial_leaves(self, num_rows: int) -> list[np.ndarray]:
    """Returns the leaves of the first rows' states, `[num_rows, ...]` each.

    Row r has the settings of environment r mod N, so there may be more rows
    than a run has environments; each has random numbers of its own.
    """
    size, rounds = self._num_environments, []
    for start in range(0, num_rows, size):
      seed = argument_checks.combine_seeds([self._seed, start // size])
      ids = range(min(size, num_rows - start))
      state = self._make_policy(seed).initial_state(ids)
      rounds.append(tree.flatten(state))
    return [np.concatenate(parts) for parts in zip(*rounds)]

  @functools.cached_property
  def _unflatten(self) -> nests.Unflattener:
    """Unflattener of actions, known after the first step."""
    return nests.Unflattener(self._compiled.output_structure[0])

  def _compile(self, size: int | None) -> Callable[..., list[Any]]:
    """Returns the compiled step, which NumPy runs for one row if it can."""

    def act(observation, step_type, state):
      output = self._policy.act(observation, step_type, state)
      return output.action, output.state

    self._compiled = compilation.CompiledFunction(
      act,
      (
        specs.tensor_spec(self._trained.spec.observations, size),
        tf.TensorSpec([size], tf.int32),
        tree.map_structure(
          lambda leaf: tf.TensorSpec([size, *leaf.shape[1:]], leaf.dtype),
          self._state_spec,
        ),
      ),
      jit_compile=False,
      in_caller=True,
    )
    if size is None:
      return self._compiled
    found = numpy_functions.find(
      self._policy, self._compiled, size, lambda: 0, with_extras=False
    )
    return found or self._compiled


class LoopActor(core.Actor):
  """Adapts a trained policy to the environment loop of a batch."""

  def __init__(self, policy: TrainedPolicy):
    self._policy = policy
    self._reward: np.ndarray | None = None  # [B]

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    self._policy.reset()

  def select_action(self, observation: types.Nest) -> types.Nest:
    return self._policy.act(observation, self._reward)

  def observe(self, action: types.Nest, next_timestep: dm_env.TimeStep) -> None:
    self._reward = next_timestep.reward
    self._policy.reset(next_timestep.step_type == _FIRST)

  def update(self, wait: bool = False) -> None:
    """Does nothing: the variables stay fixed."""
