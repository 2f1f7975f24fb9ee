"""Batches of Gymnasium environments: vector environments, and loops."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from dm_env import specs

from repertory.environments.adapters import (
  gymnasium_adapter,
  gymnasium_results,
  gymnasium_spaces,
)
from repertory.environments.batches import layout, vector_batch
from repertory.environments.batches import seeds as seeds_lib
from repertory.environments.batches.layout import Nest
from repertory.environments.rendering import rendering
from repertory.environments.values import casting, timestep_checker
from repertory.environments.values.argument_checks import ArgumentError

if TYPE_CHECKING:
  import gymnasium

_FLOAT32 = np.dtype(np.float32)
_MAX = casting.MAX_SINGLE


def make_batch(
  environment_id: str, seeds: Sequence[int], **settings: Any
) -> vector_batch.VectorBatch:
  """Makes a batch of registered Gymnasium environments.

  If Gymnasium has a NumPy vector environment of the id (as for CartPole) and
  the batch is large enough for it to be faster, that one is used.

  Args:
    environment_id: As for `gymnasium_adapter.make_env`.
    seeds: One per slot. A vector environment has a single seed, made of all of
      them, so the episodes of a slot depend on the whole batch.
    **settings: Keyword arguments of `gymnasium.make`.

  Raises:
    ImportError: If gymnasium is not installed.
    ValueError: As by `gymnasium_adapter.make`.
  """
  environment_id = gymnasium_adapter.register(environment_id)
  vector_env = _make_vector_env(environment_id, len(seeds), settings)
  if vector_env is None:
    return vector_batch.VectorBatch(
      GymnasiumLoop(
        [gymnasium_adapter.make_env(environment_id, **settings) for _ in seeds],
        seeds,
      )
    )
  return vector_batch.VectorBatch(
    GymnasiumVectorSource(vector_env, seeds_lib.combine(seeds))
  )


# For smaller batches, a loop is faster than NumPy arrays.
_MIN_VECTOR_SIZE = 8


def _make_vector_env(
  environment_id: str, size: int, settings: Mapping[str, Any]
) -> 'gymnasium.vector.VectorEnv | None':
  gymnasium = gymnasium_spaces.import_gymnasium()
  spec = gymnasium.registry.get(environment_id)
  if size < _MIN_VECTOR_SIZE or spec is None:
    return None
  if spec.vector_entry_point is None or spec.additional_wrappers:
    return None
  mode = gymnasium.VectorizeMode.VECTOR_ENTRY_POINT
  vector_env = gymnasium.make_vec(environment_id, size, mode, **settings)
  # Those of JAX block all slots while one restarts.
  if not _restarts_with_next_step(vector_env) or vector_env.metadata.get('jax'):
    vector_env.close()
    return None
  return vector_env


def _restarts_with_next_step(vector_env: 'gymnasium.vector.VectorEnv') -> bool:
  modes = gymnasium_spaces.import_gymnasium().vector.AutoresetMode
  return vector_env.metadata.get('autoreset_mode') is modes.NEXT_STEP


class GymnasiumVectorSource(gymnasium_results.GymnasiumOutcomes):
  """A `gymnasium.vector.VectorEnv` as a `vector_batch.VectorSource`.

  It must restart an ended slot with the next step, as dm_env does: then the
  last observation of an episode is that of its end.
  """

  def __init__(self, vector_env: 'gymnasium.vector.VectorEnv', seed: int):
    """Takes ownership of the vector environment.

    Args:
      vector_env: Vector environment whose `autoreset_mode` is `NEXT_STEP`.
      seed: Seed of the first reset only.

    Raises:
      ValueError: If it has another `autoreset_mode`, or if a space cannot
        become a spec.
    """
    if not _restarts_with_next_step(vector_env):
      raise ArgumentError(
        'vector_env',
        'expected AutoresetMode.NEXT_STEP, got'
        f' {vector_env.metadata.get("autoreset_mode")}.',
      )
    self._env = vector_env
    self._seed: int | None = seed
    self._observation = gymnasium_spaces.make_batch_codec(
      vector_env.single_observation_space, 'observation_space'
    )
    self._action = gymnasium_spaces.make_batch_codec(
      vector_env.single_action_space, 'action_space'
    )
    self._infos: Mapping[str, Any] = {}
    self._layout = layout.NestLayout(self._observation.spec, 'observation')
    self._copies = [np.array] * len(self._layout.specs)
    self._is_array = isinstance(self._observation.spec, specs.Array)

  @property
  def batch_size(self) -> int:
    """The number of slots, B."""
    return self._env.num_envs

  def observation_spec(self) -> Nest:
    """Returns the nest of specs of the observation space."""
    return self._observation.spec

  def action_spec(self) -> Nest:
    """Returns the nest of specs of the action space."""
    return self._action.spec

  def reset(self) -> Nest:
    """Starts all episodes; the first reset seeds the environments."""
    seed, self._seed = self._seed, None
    observation, _ = self._env.reset(seed=seed)
    return self._decode(observation)

  def step(
    self, actions: Nest, ended: np.ndarray | None
  ) -> vector_batch.StepResult:
    """Steps or restarts each slot; the environment restarts them itself."""
    actions = self._action.encode(actions)
    results = self._env.step(actions)
    observation, rewards, terminated, truncated, self._infos = results
    return self.to_outcome(
      self._decode(observation), rewards, terminated, truncated, ended
    )

  def info(self, slot: int) -> Mapping[str, Any]:
    """Returns Gymnasium's info of the last step of a slot."""
    return gymnasium_results.info_of(self._infos, slot)

  def render(self, slots: Sequence[int]) -> rendering.Pictures:
    """Returns the images of some slots; renders all of them."""
    drawn = gymnasium_adapter.draw(self._env)
    return [drawn[slot] for slot in slots]

  @property
  def render_fps(self) -> float | None:
    """Frames per second of a slot's video; None if not defined."""
    return self._env.metadata.get('render_fps')

  def close(self) -> None:
    """Closes the vector environment."""
    self._env.close()

  def _decode(self, observation: Any) -> Nest:
    nest = self._observation.decode(observation)
    # Copies, because a vector environment may reuse its buffers.
    return (
      np.array(nest) if self._is_array else self._layout.map(self._copies, nest)
    )


class GymnasiumLoop(gymnasium_results.GymnasiumOutcomes):
  """Loop over Gymnasium environments, as a `vector_batch.VectorSource`.

  Makes the same checks as `batch.EnvironmentBatch` of adapters, but casts and
  compares once per batch where it can.
  """

  def __init__(self, gym_envs: Sequence['gymnasium.Env'], seeds: Sequence[int]):
    """Takes ownership of the environments.

    Args:
      gym_envs: At least one, with equal spaces; nothing else may step them.
      seeds: One per environment, for its first reset only.

    Raises:
      ValueError: As by the adapter; also if the list is empty, or if the specs
        differ.
    """
    adapters = [
      gymnasium_adapter.GymnasiumAdapter(env, seed)
      for env, seed in zip(gym_envs, seeds, strict=True)
    ]
    timestep_checker.check_environments(adapters)
    self._envs = list(gym_envs)
    self._infos: list[Mapping[str, Any]] = [{} for _ in gym_envs]
    self._seeds: list[int] | None = list(seeds)
    self._observation = gymnasium_spaces.make_codec(
      gym_envs[0].observation_space, 'observation_space'
    )
    self._action = gymnasium_spaces.make_codec(
      gym_envs[0].action_space, 'action_space'
    )
    self._actions = layout.NestLayout(self._action.spec, '`actions`')
    observations = layout.NestLayout(self._observation.spec, 'observation')
    self._build = observations.unflatten
    self._checker = timestep_checker.TimestepChecker(
      observations, self.reward_spec(), self.discount_spec()
    )
    self._buffers = [
      ((len(self._envs), *spec.shape), spec.dtype)
      for spec in observations.specs
    ]
    self._plain = (None, None)
    if _is_plain(gym_envs[0].observation_space):
      self._plain = self._checker.plain
    self._plain_action = _is_plain(gym_envs[0].action_space)

  @property
  def batch_size(self) -> int:
    """The number of slots, B."""
    return len(self._envs)

  def observation_spec(self) -> Nest:
    """Returns the nest of specs of the observation space."""
    return self._observation.spec

  def action_spec(self) -> Nest:
    """Returns the nest of specs of the action space."""
    return self._action.spec

  def reset(self) -> Nest:
    """Starts all episodes; the first reset seeds the environments."""
    seeds, self._seeds = self._seeds or [None] * len(self._envs), None
    arrays = [np.empty(*buffer) for buffer in self._buffers]
    for slot, (env, seed) in enumerate(zip(self._envs, seeds)):
      self._store(self._reset(env, slot, seed=seed), arrays, slot)
    return self._build(arrays)

  def step(
    self, actions: Nest, ended: np.ndarray | None
  ) -> vector_batch.StepResult:
    """Steps or restarts each slot."""
    size = len(self._envs)
    arrays = [np.empty(*buffer) for buffer in self._buffers]
    rewards: list[float] = [0.0] * size
    discounts: list[float] = [1.0] * size
    last: list[bool] = [False] * size
    shape, dtype = self._plain
    infos = self._infos
    restarts = [False] * size if ended is None else ended.tolist()
    slots = zip(range(size), self._envs, self._split(actions), restarts)
    for slot, env, action, again in slots:
      if again:
        observation = self._reset(env, slot)
      else:
        try:
          observation, reward, done, cut, infos[slot] = env.step(action)
        except (TypeError, ValueError) as error:
          with _explained_in(slot):
            gymnasium_results.check_interface(env, error)
          raise
        if type(done) is not bool or type(cut) is not bool:
          done, cut = self._to_flags(done, cut, slot)
        if type(reward) is not float or not -_MAX <= reward <= _MAX:
          reward = self._to_float(reward, slot)
        rewards[slot] = reward
        if done:
          discounts[slot] = 0.0
        if done or cut:
          last[slot] = True
      # Fast path for plain Python values, without a function call.
      if (
        type(observation) is np.ndarray
        and observation.shape == shape
        and observation.dtype == dtype
      ):
        arrays[0][slot] = observation
      else:
        self._store(observation, arrays, slot)
    nest = self._build(arrays)
    return vector_batch.gather(
      nest, rewards, discounts, last, _FLOAT32, _FLOAT32
    )

  def info(self, slot: int) -> Mapping[str, Any]:
    """Returns Gymnasium's info of the last step of a slot."""
    return self._infos[slot]

  def render(self, slots: Sequence[int]) -> rendering.Pictures:
    """Renders some slots."""
    return [gymnasium_adapter.draw(self._envs[slot]) for slot in slots]

  @property
  def render_fps(self) -> float | None:
    """Frames per second of a slot's video; None if not defined."""
    return self._envs[0].metadata.get('render_fps')

  def close(self) -> None:
    """Closes every environment even if one fails; raises the first error."""
    with contextlib.ExitStack() as stack:
      for env in self._envs:
        stack.callback(env.close)

  def _split(self, actions: Nest) -> list[Nest]:
    """Returns one action per slot, as a value of the space."""
    if self._plain_action:
      return list(actions)
    columns = self._actions.flatten(actions)
    return [
      self._action.encode(self._actions.unflatten(row))
      for row in zip(*columns, strict=True)
    ]

  def _store(
    self, observation: Any, arrays: list[np.ndarray], slot: int
  ) -> None:
    try:
      self._checker.store(self._observation.decode(observation), arrays, slot)
    except ValueError as error:
      raise vector_batch.SlotError(slot, str(error)) from error

  def _reset(self, env: 'gymnasium.Env', slot: int, **seed: Any) -> Any:
    with _explained_in(slot):
      result = gymnasium_results.reset(env, **seed)
      return gymnasium_results.observation_of(result)

  def _to_flags(self, done: Any, cut: Any, slot: int) -> tuple[bool, bool]:
    with _explained_in(slot):
      return (
        gymnasium_results.to_flag('terminated', done),
        gymnasium_results.to_flag('truncated', cut),
      )

  def _to_float(self, reward: Any, slot: int) -> float:
    try:
      return self._checker.check_reward(reward)
    except ValueError as error:
      raise vector_batch.SlotError(slot, str(error)) from error


@contextlib.contextmanager
def _explained_in(slot: int) -> Iterator[None]:
  """Adds the slot to an error whose message already gives advice."""
  try:
    yield
  except vector_batch.EnvironmentContractError as error:
    raise vector_batch.SlotError(slot, str(error), advice='') from error


def _is_plain(space: Any) -> bool:
  """Returns whether values of a space need no conversion to its spec."""
  spaces = gymnasium_spaces.import_gymnasium().spaces
  if isinstance(space, spaces.Discrete):
    return not space.start
  return isinstance(
    space, (spaces.Box, spaces.MultiBinary, spaces.MultiDiscrete)
  )
