"""Adapter from Gymnasium to dm_env."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.components.config import import_paths
from repertory.components.config import settings as settings_lib
from repertory.environments.adapters import (
  extras,
  gymnasium_results,
  gymnasium_spaces,
)
from repertory.environments.batches import vector_batch
from repertory.environments.batches.layout import Nest
from repertory.environments.rendering import headless, quieting, rendering
from repertory.environments.values import argument_checks, casting

if TYPE_CHECKING:
  import gymnasium

# Settings of an environment that is to be rendered.
FILMED = {'render_mode': 'rgb_array'}


def make(environment_id: str, seed: int, **settings: Any) -> 'GymnasiumAdapter':
  """Makes a registered Gymnasium environment.

  Args:
    environment_id: As for `make_env`, for example 'CartPole-v1'.
    seed: As for `GymnasiumAdapter`.
    **settings: Keyword arguments of `gymnasium.make`.

  Raises:
    ImportError: If gymnasium is not installed.
    ValueError: If Gymnasium does not know the id, or as by `GymnasiumAdapter`.
  """
  return GymnasiumAdapter(make_env(environment_id, **settings), seed)


def make_env(environment_id: str, **settings: Any) -> 'gymnasium.Env':
  """Makes a `gymnasium.Env`, for `GymnasiumAdapter`.

  Args:
    environment_id: As for `gymnasium.make`. The module of 'module:Id' is
      imported first, by `import_paths.import_module`.
    **settings: Keyword arguments of `gymnasium.make`.

  Raises:
    ImportError: If gymnasium is not installed, or a package that the
      environment needs.
    ValueError: If Gymnasium does not know the id, or the module cannot be
      imported.
  """
  gymnasium = gymnasium_spaces.import_gymnasium()
  environment_id = register(environment_id)
  if _needs_box2d(gymnasium.registry.get(environment_id)):
    # Box2D warns on import, and fails if warnings are errors.
    with quieting.ignored_warnings(category=DeprecationWarning):
      extras.import_extra('Box2D', 'box2d')
  try:
    # Gymnasium's passive checker only warns; a batch raises.
    return gymnasium.make(environment_id, disable_env_checker=True, **settings)
  except gymnasium.error.DependencyNotInstalled as error:
    raise ImportError(
      settings_lib.text_of(error)
    ) from error  # The message has the installation command.
  except gymnasium.error.Error as error:
    hint = settings_lib.did_you_mean(environment_id, gymnasium.registry, 3)
    if environment_id.startswith('ALE/'):
      hint = ' The names of Atari games are atari:<game>.'
    # Drop Gymnasium's own suggestion of an id.
    problem = settings_lib.text_of(error)
    problem = problem.partition(' Did you mean')[0] if hint else problem
    raise argument_checks.ArgumentError(
      'environment_id',
      'expected the id of a registered Gymnasium environment, got'
      f' {environment_id!r}: {problem}{hint}',
    ) from error


def _needs_box2d(spec: Any) -> bool:
  return spec is not None and 'envs.box2d.' in str(spec.entry_point)


def register(environment_id: str) -> str:
  """Imports the module of an id that names one, which registers the id.

  Args:
    environment_id: Such as 'my_module:MyEnvironment-v0', or without a module.

  Returns:
    The id without the module.

  Raises:
    ArgumentError: If the module cannot be imported.
  """
  module, colon, rest = environment_id.rpartition(':')
  if colon:
    try:
      import_paths.import_module(module)
    except import_paths.ImportPathError as error:
      raise argument_checks.ArgumentError(
        'environment_id', f'in {environment_id!r}, {error}'
      ) from error
  return rest


class GymnasiumAdapter(dm_env.Environment):
  """Adapter of a `gymnasium.Env` to `dm_env.Environment`.

  A `terminated` episode ends with discount 0. A `truncated` one, for example by
  a time limit, ends with discount 1, so that learners bootstrap from its last
  observation. The dtypes are those of the spaces, the reward is float64; see
  `wrappers.SinglePrecision`.

  Attributes:
    info: Gymnasium's info of the last step or reset.
  """

  def __init__(self, gym_env: 'gymnasium.Env', seed: int):
    """Takes ownership of the environment.

    Args:
      gym_env: The environment; nothing else may step it.
      seed: Seed of the first reset only, so that episodes differ; at least 0.

    Raises:
      ImportError: If gymnasium is not installed.
      ValueError: If the seed is not an integer of at least 0, or if a space
        cannot become a spec (see `gymnasium_spaces.make_codec`).
    """
    seed = argument_checks.check_integer('seed', seed, 0)
    self._env = gym_env
    self.info: Mapping[str, Any] = {}
    self._seed: int | None = seed
    self._observation = gymnasium_spaces.make_codec(
      gym_env.observation_space, 'observation_space'
    )
    self._action = gymnasium_spaces.make_codec(
      gym_env.action_space, 'action_space'
    )
    self._ended = True

  def __getstate__(self) -> dict[str, Any]:
    """Refuses environments that pickle only their constructor's arguments.

    Unpickled, such an environment would be a fresh one, not in the same state.

    Raises:
      TypeError: If the environment is of that kind, as those of MuJoCo are.
    """
    ez_pickle = gymnasium_spaces.import_gymnasium().utils.EzPickle
    unwrapped = self._env.unwrapped
    own = getattr(type(unwrapped), '__getstate__', None)
    if isinstance(unwrapped, ez_pickle) and own is ez_pickle.__getstate__:
      raise TypeError(
        f'{type(unwrapped).__name__} is pickled by its arguments alone'
      )
    # The info of an environment may not be picklable.
    return {**vars(self), 'info': {}}

  @property
  def gym_env(self) -> 'gymnasium.Env':
    """The wrapped Gymnasium environment."""
    return self._env

  def reset(self) -> dm_env.TimeStep:
    """Starts an episode; the first reset seeds the environment."""
    seed, self._seed = self._seed, None
    result = gymnasium_results.reset(self._env, seed=seed)
    observation = gymnasium_results.observation_of(result)
    self.info = result[1]
    self._ended = False
    return dm_env.restart(self._decode(observation))

  def step(self, action: Nest) -> dm_env.TimeStep:
    """Steps the environment, or resets it if the episode has ended.

    Args:
      action: Nest of the action spec.

    Raises:
      ValueError: If the action does not match its spec.
      EnvironmentContractError: If the observation or the reward does not match
        its spec, or the environment has the interface of the old Gym.
    """
    if self._ended:
      return self.reset()
    action = self._action.encode(action)
    try:
      results = self._env.step(action)
      observation, reward, terminated, truncated, self.info = results
    except (TypeError, ValueError) as error:
      gymnasium_results.check_interface(self._env, error)
      raise
    terminated = gymnasium_results.to_flag('terminated', terminated)
    truncated = gymnasium_results.to_flag('truncated', truncated)
    if not isinstance(reward, float):
      reward = _to_float(reward)
    observation = self._decode(observation)
    self._ended = terminated or truncated
    return dm_env.TimeStep(
      dm_env.StepType.LAST if self._ended else dm_env.StepType.MID,
      reward,
      0.0 if terminated else 1.0,
      observation,
    )

  def observation_spec(self) -> Nest:
    """Returns the nest of specs of the observation space."""
    return self._observation.spec

  def action_spec(self) -> Nest:
    """Returns the nest of specs of the action space."""
    return self._action.spec

  def reward_spec(self) -> specs.Array:
    """Returns the spec of the reward, a float64."""
    return specs.Array((), np.float64, name='reward')

  def discount_spec(self) -> specs.BoundedArray:
    """Returns the spec of the discount, a float64: 0 if terminated, else 1."""
    return specs.BoundedArray((), np.float64, 0, 1, name='discount')

  def render(self) -> np.ndarray:
    """Renders the environment: see `draw`."""
    return draw(self._env)

  @property
  def render_fps(self) -> float | None:
    """Frames per second of a video; None if not defined."""
    return self._env.metadata.get('render_fps')

  def close(self) -> None:
    """Closes the Gymnasium environment."""
    self._env.close()

  def _decode(self, observation: Any) -> Nest:
    try:
      return self._observation.decode(observation)
    except ValueError as error:
      raise vector_batch.EnvironmentContractError(str(error)) from error


def draw(env: Any) -> Any:
  """Returns the result of `render`: an image, or several.

  Args:
    env: A `gymnasium.Env` or `gymnasium.vector.VectorEnv`.

  Raises:
    NoPictureError: If it was not made with the render mode 'rgb_array', or does
      not support it.
    ImportError: If a package that it needs for rendering is missing.
  """
  modes = env.metadata.get('render_modes') or ()
  if env.render_mode != 'rgb_array' or 'rgb_array' not in modes:
    raise rendering.NoPictureError(
      "it needs the render mode 'rgb_array', but has the modes "
      f'{", ".join(map(str, modes)) or "none"}, and was made with '
      f'{env.render_mode}; {rendering.HOW_TO_FILM}'
    )
  headless.prepare_pygame()
  try:
    if not hasattr(env.unwrapped, 'mujoco_renderer'):
      return env.render()
    headless.prepare_mujoco()
    with headless.explaining():
      return env.render()
  except gymnasium_spaces.import_gymnasium().error.DependencyNotInstalled as e:
    raise ImportError(
      f"{settings_lib.text_of(e)} For videos: pip install 'repertory[video]'"
    ) from e


def _to_float(reward: Any) -> float:
  try:
    return float(casting.cast(reward, (), np.dtype(np.float64)))
  except ValueError as error:
    raise vector_batch.EnvironmentContractError(
      f'reward of `gym_env`: {error}.'
    ) from error
