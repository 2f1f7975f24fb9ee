"""Environments of the Behaviour Suite (bsuite)."""

import inspect
import urllib.error
from typing import Any

import dm_env
import numpy as np

from repertory.environments.adapters import extras
from repertory.environments.rendering import drawing, rendering
from repertory.environments.values import argument_checks
from repertory.environments.wrappers import environment_wrapper


def make(
  bsuite_id: str, seed: int, render_mode: str | None = None
) -> dm_env.Environment:
  """Makes an environment without bsuite's logging.

  All episodes end with discount 0, also those that a time limit ends: bsuite
  does not distinguish the two.

  Args:
    bsuite_id: Such as 'catch/0'; those of mnist download their images.
    seed: At least 0. It replaces the seed of the bsuite id, except for the seed
      of the action mapping, which is part of the experiment.
    render_mode: None, or 'rgb_array' to enable rendering, which needs a board
      as observation.

  Raises:
    ImportError: If bsuite is not installed.
    ValueError: If the id is unknown, or its images cannot be downloaded.
  """
  sweep = extras.import_extra('bsuite.sweep', 'bsuite')
  argument_checks.check_known('id', bsuite_id, list(sweep.SWEEP))
  seed = argument_checks.fold_seed(seed)
  settings: dict[str, Any] = dict(sweep.SETTINGS[bsuite_id])
  experiment = bsuite_id.partition('/')[0]
  bsuite = extras.import_extra('bsuite.bsuite', 'bsuite')
  load = bsuite.EXPERIMENT_NAME_TO_ENVIRONMENT[experiment]
  if experiment == 'deep_sea_stochastic':
    # Its loader sets `deterministic`, but with a random seed.
    load = bsuite.EXPERIMENT_NAME_TO_ENVIRONMENT['deep_sea']
    settings['deterministic'] = False
  if 'seed' in inspect.signature(load).parameters:
    settings['seed'] = seed
  try:
    environment = load(**settings)
  except urllib.error.URLError as error:
    raise argument_checks.ArgumentError(
      'id',
      'expected an id whose images can be downloaded, got'
      f' {bsuite_id!r}: {error}. Connect to the network, or use another id.',
    ) from error
  return environment if render_mode is None else _Board(environment)


class _Board(environment_wrapper.EnvironmentWrapper):
  """Renders the observation, which must be a board, white on black."""

  render_fps = 5

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    self._timestep = timestep
    return timestep

  def render(self) -> np.ndarray:
    board = np.asarray(self._timestep.observation)
    if board.ndim != 2 or min(board.shape) < 2:
      raise rendering.RenderError(
        'of bsuite only boards can be rendered, as of catch, deep_sea, mnist;'
        f' this observation has the shape {list(board.shape)}'
      )
    return drawing.draw_board(board)
