"""MiniGrid and BabyAI: partially observed grid worlds."""

from collections.abc import Mapping
from typing import Any

import dm_env
import numpy as np

from repertory.environments.adapters import extras, gymnasium_adapter
from repertory.environments.registry import name_options
from repertory.environments.values import argument_checks

OPTIONS = (
  name_options.Option(
    'one_hot', False, 'Whether tiles are 21 one-hot channels, not 3 codes'
  ),
  name_options.Option('full', False, 'Whether the whole grid is observed'),
)

# Numbers of objects, colors and states.
_NUM_CODES = (11, 6, 4)


def make(
  world_id: str, settings: Mapping[str, Any], seed: int
) -> dm_env.Environment:
  """Makes a grid world without its mission, which is a string.

  The observation is a dict of 'image', a float32 array `[H, W, 3]` of the codes
  of object, color and state of each tile, and 'direction', the agent's heading.

  Args:
    world_id: Such as 'MiniGrid-Empty-5x5-v0'.
    settings: A value for each of `OPTIONS`, and `render_mode` to render the
      whole grid, with the agent's field of view highlighted.
    seed: At least 0.
  """
  extras.import_extra('minigrid', 'minigrid')  # Registers its ids.
  gymnasium = extras.import_extra('gymnasium', 'minigrid')
  ids = [
    i for i in gymnasium.registry if i.startswith(('MiniGrid-', 'BabyAI-'))
  ]
  argument_checks.check_known('id', world_id, sorted(ids))
  env = gymnasium_adapter.make_env(
    world_id, render_mode=settings.get('render_mode')
  )
  if settings['full']:
    wrappers = extras.import_extra('minigrid.wrappers', 'minigrid')
    env = wrappers.FullyObsWrapper(env)
  spaces = gymnasium.spaces
  seen: Any = env.observation_space
  height, width, depth = seen['image'].shape
  highest, convert = max(_NUM_CODES) - 1, np.float32
  if settings['one_hot']:
    depth, highest, convert = sum(_NUM_CODES), 1, _encode_one_hot
  space = spaces.Dict(
    direction=seen['direction'],
    image=spaces.Box(0, highest, (height, width, depth), np.float32),
  )
  # MiniGrid compares an action many times, which is slow with NumPy integers.
  env = gymnasium.wrappers.TransformAction(env, int, env.action_space)

  def transform(observation: Mapping[str, Any]) -> dict[str, Any]:
    image = convert(observation['image'])
    return {'direction': observation['direction'], 'image': image}

  env = gymnasium.wrappers.TransformObservation(env, transform, space)
  return gymnasium_adapter.GymnasiumAdapter(env, seed)


_ONE_HOT = [np.eye(n, dtype=np.float32) for n in _NUM_CODES]


def _encode_one_hot(image: np.ndarray) -> np.ndarray:
  """Converts codes `[H, W, 3]` to one-hot channels `[H, W, 21]`."""
  return np.concatenate(
    [table[image[..., i]] for i, table in enumerate(_ONE_HOT)], axis=-1
  )
