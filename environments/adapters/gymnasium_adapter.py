"""Adapter from Gymnasium to dm_env."""

import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import dm_env
import numpy as np

from repertory.components.config import import_paths
from repertory.components.config import settings as settings_lib
from repertory.environments.adapters import extras, gymnasium_spaces
from repertory.environments.batches.layout import (
  EnvironmentContractError,
  Nest,
)
from repertory.environments.rendering import headless, rendering
from repertory.environments.values import argument_checks, casting

if TYPE_CHECKING:
  import gymnasium


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
  spec = gymnasium.registry.get(environment_id)
  if 'envs.box2d.' in str(getattr(spec, 'entry_point', '')):
    # Box2D warns on import, and fails if warnings are errors.
    with extras.ignored_warnings(category=DeprecationWarning):
      extras.import_extra('Box2D', 'box2d')
  try:
    # Gymnasium's passive checker only warns; a batch raises.
    return gymnasium.make(environment_id, disable_env_checker=True, **settings)
  except gymnasium.error.DependencyNotInstalled as error:
    # The message has the installation command.
    raise ImportError(settings_lib.text_of(error)) from error
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


def register(environment_id: str) -> str:
  """Imports the module of 'my_module:MyEnvironment-v0'; returns the bare id.

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


_, _MID, _LAST = dm_env.StepType
_DOUBLE = np.dtype(np.float64)


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
    self._observation_spec, self._decode, _ = gymnasium_spaces.make_codec(
      getattr(gym_env, 'observation_space', None), 'observation_space'
    )
    self._action_spec, _, self._encode = gymnasium_spaces.make_codec(
      getattr(gym_env, 'action_space', None), 'action_space'
    )
    self._ended = True

  def __getstate__(self) -> dict[str, Any]:
    """Refuses environments that pickle only their constructor's arguments.

    Unpickled, those (as of MuJoCo) would be fresh, not in the same state.
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

  def reset(self) -> dm_env.TimeStep:
    seed, self._seed = self._seed, None
    try:
      result = self._env.reset(seed=seed)
    except (TypeError, ValueError) as error:
      _check_interface(self._env, error)
      raise
    is_pair = isinstance(result, tuple) and len(result) == 2
    if not is_pair or not isinstance(result[1], Mapping):
      raise EnvironmentContractError(
        '`reset` must return an observation and a dictionary, its info, got '
        f'{casting.shorten(result)}. Return `observation, {{}}`.'
      )
    observation, self.info = result
    self._ended = False
    return dm_env.restart(self._cast(0.0, observation)[1])

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
    action = self._encode(action)
    try:
      results = self._env.step(action)
      observation, reward, terminated, truncated, self.info = results
    except (TypeError, ValueError) as error:
      _check_interface(self._env, error)
      raise
    if type(terminated) is not bool or type(truncated) is not bool:
      terminated = _to_flag('terminated', terminated)
      truncated = _to_flag('truncated', truncated)
    self._ended = terminated or truncated
    reward, observation = self._cast(reward, observation)
    return dm_env.TimeStep(
      _LAST if self._ended else _MID,
      reward,
      0.0 if terminated else 1.0,
      observation,
    )

  def observation_spec(self) -> Nest:
    return self._observation_spec

  def action_spec(self) -> Nest:
    return self._action_spec

  def render(self) -> np.ndarray:
    """Renders the environment: see `draw`."""
    return draw(self._env)

  @property
  def render_fps(self) -> float | None:
    """Frames per second of a video; None if not defined."""
    return self._env.metadata.get('render_fps')

  def close(self) -> None:
    self._env.close()

  def __getattr__(self, name: str) -> Any:
    """Returns methods of a `GoalEnv`, see `launch.experiments.goals`."""
    if name in ('compute_reward', 'compute_terminated'):
      return getattr(self._env.unwrapped, name)
    raise AttributeError(name)

  def _cast(self, reward: Any, observation: Any) -> tuple[float, Nest]:
    try:
      if type(reward) is not float:
        reward = float(casting.cast(reward, (), _DOUBLE, 'reward'))
      return reward, self._decode(observation)
    except ValueError as error:
      message = str(error).removesuffix('.')
      raise EnvironmentContractError(f'{message}.') from error


def draw(env: Any) -> Any:
  """Returns the result of `render`, of an environment or a vector environment.

  Raises:
    RenderError: If it was not made with the render mode 'rgb_array', or does
      not support it.
    ImportError: If a package that it needs for rendering is missing.
  """
  modes = env.metadata.get('render_modes') or ()
  if env.render_mode != 'rgb_array' or 'rgb_array' not in modes:
    raise rendering.RenderError(
      "it needs the render mode 'rgb_array', but has the modes "
      f'{", ".join(map(str, modes)) or "none"}, and was made with '
      f'{env.render_mode}; {rendering.HOW_TO_RENDER}'
    )
  headless.prepare_pygame()
  try:
    if not hasattr(env.unwrapped, 'mujoco_renderer'):
      return env.render()
    with headless.using_mujoco():
      return env.render()
  except gymnasium_spaces.import_gymnasium().error.DependencyNotInstalled as e:
    raise ImportError(
      f"{settings_lib.text_of(e)} For videos: pip install 'repertory[video]'"
    ) from e


def _check_interface(env: Any, error: Exception) -> None:
  """Raises a helpful error for an environment with the interface of old Gym."""
  message = str(error)
  file = traceback.extract_tb(error.__traceback__)[-1].filename
  if 'gymnasium' not in file:  # This one, or that of a wrapper.
    return
  if 'reset() got an unexpected keyword' in message:
    due = (
      '`reset` must take the keywords `seed` and `options`. Write `def '
      'reset(self, *, seed=None, options=None)`, call `super().reset(seed='
      'seed)`, and return the observation and a dictionary.'
    )
  elif 'unpack' in message:
    due = (
      '`step` must return five values, observation, reward, terminated, '
      "truncated and info. Old Gym's `done` is `terminated` if the task is "
      'over, and `truncated` if a time limit cuts it off.'
    )
  else:
    return
  name = type(getattr(env, 'unwrapped', env)).__name__
  raise EnvironmentContractError(f'{name}: {due} ({message})') from error


def _to_flag(name: str, value: Any) -> bool:
  """Returns `terminated` or `truncated`, a bool or 0 or 1, as a Python bool."""
  if isinstance(value, (bool, np.bool_)):
    return bool(value)
  array = np.asarray(value)
  if array.dtype.kind in 'biuf' and array.size == 1 and array.item() in (0, 1):
    return bool(array.item())
  raise EnvironmentContractError(
    f'{name}: expected True or False, found {casting.shorten(value)}. Return '
    "the five values of Gymnasium's `step` in their order."
  )
