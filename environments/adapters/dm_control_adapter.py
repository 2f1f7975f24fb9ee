"""Tasks of the DeepMind Control Suite."""

import importlib
from collections.abc import Mapping
from typing import Any

import dm_env
import numpy as np

from repertory.environments.adapters import extras
from repertory.environments.registry import name_options
from repertory.environments.rendering import headless
from repertory.environments.values import argument_checks
from repertory.environments.wrappers import environment_wrapper

OPTIONS = (
  name_options.Option(
    'nested', False, 'Whether observations are dictionaries, not one vector'
  ),
)

# The suite's key of the flat observation vector.
_FLAT = 'observations'

# The largest offscreen buffer of the suite's models.
_HEIGHT, _WIDTH = 480, 640


def make(
  task: str, settings: Mapping[str, Any], seed: int
) -> dm_env.Environment:
  """Makes a task with state observations, not pixels.

  The suite's episodes end after a fixed time only, with discount 1; a few tasks
  terminate as well, with discount 0.

  Args:
    task: Such as 'cartpole/swingup'.
    settings: A value for each of `OPTIONS`, and `render_mode` to enable
      rendering.
    seed: At least 0.

  Raises:
    ImportError: If dm_control is not installed.
    ValueError: If the task is unknown, the seed is not valid, or rendering is
      enabled without OpenGL.
  """
  if settings.get('render_mode'):
    extras.import_extra('dm_control', 'dm-control')
    with headless.using_mujoco():
      importlib.import_module('dm_control._render')
  suite = extras.import_extra('dm_control.suite', 'dm-control')
  argument_checks.check_known(
    'task', task, sorted(map('/'.join, suite.ALL_TASKS))
  )
  return _Task(
    suite.load(
      *task.split('/'),
      task_kwargs={'random': argument_checks.fold_seed(seed)},
      environment_kwargs={'flat_observation': not settings['nested']},
    ),
    is_flat=not settings['nested'],
  )


class _Task(environment_wrapper.EnvironmentWrapper):
  """Task that renders its first camera, `[480, 640, 3]`.

  A flat observation is the vector, from a dictionary with nothing else.
  """

  def __init__(self, environment: Any, is_flat: bool):
    super().__init__(environment)
    self._task = environment
    self._is_flat = is_flat

  def observation_spec(self) -> Any:
    spec = self._environment.observation_spec()
    return spec[_FLAT] if self._is_flat else spec

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    if not self._is_flat:
      return timestep
    return timestep._replace(observation=timestep.observation[_FLAT])

  def render(self) -> np.ndarray:
    physics = self._task.physics
    camera = 0 if physics.model.ncam else -1  # The free camera.
    with headless.using_mujoco():
      return physics.render(_HEIGHT, _WIDTH, camera_id=camera)

  @property
  def render_fps(self) -> float:
    """Control steps per second of simulated time."""
    return 1 / self._task.control_timestep()
