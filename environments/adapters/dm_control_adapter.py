"""Tasks of the DeepMind Control Suite."""

import importlib
from collections.abc import Mapping
from typing import Any

import dm_env
import numpy as np

from repertory.environments.adapters import extras
from repertory.environments.rendering import headless
from repertory.environments.values import argument_checks
from repertory.environments.wrappers import environment_wrapper

# The suite's key of the flat observation vector.
_FLAT = 'observations'

# The largest offscreen buffer of the suite's models.
_HEIGHT, _WIDTH = 480, 640


def make(
  task: str, settings: Mapping[str, Any], seed: int
) -> dm_env.Environment:
  """Makes a task whose observation is a vector of its state, not pixels.

  The suite's episodes end after a fixed time only, with discount 1; a few tasks
  terminate as well, with discount 0.

  Args:
    task: Such as 'cartpole/swingup'.
    settings: `render_mode` to enable rendering.
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
      environment_kwargs={'flat_observation': True},
    )
  )


class _Task(environment_wrapper.EnvironmentWrapper):
  """Extracts the vector; renders the first camera, `[480, 640, 3]`."""

  def __init__(self, environment: Any):
    super().__init__(environment)
    self._task = environment

  def observation_spec(self) -> Any:
    return self._environment.observation_spec()[_FLAT]

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
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
