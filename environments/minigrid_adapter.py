"""MiniGrid and BabyAI: worlds of tiles, seen in part."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dm_env
import numpy as np

from repertory.environments import (
  close_names,
  extras,
  gymnasium_adapter,
  gymnasium_sources,
  name_options,
  vector_batch,
)
from repertory.environments.wrappers import single_precision

if TYPE_CHECKING:
  import gymnasium

OPTIONS = (
  name_options.Option(
    'one_hot', False, 'Whether tiles are 21 channels of 0 and 1, not 3 codes'
  ),
  name_options.Option(
    'full', False, 'Whether the whole world is seen, not what is ahead'
  ),
)

# What `make` and others need to be told of worlds whose picture is wanted.
FILMED = gymnasium_adapter.FILMED

# How many objects, colors and states there are.
_NUM_CODES = (11, 6, 4)


def ids() -> list[str]:
  """Returns the ids of all worlds, such as 'MiniGrid-Empty-5x5-v0'.

  Raises:
    ImportError: If minigrid is not installed.
  """
  extras.import_extra('minigrid', 'minigrid')  # It registers its worlds.
  registry = extras.import_extra('gymnasium', 'minigrid').registry
  return sorted(i for i in registry if i.startswith(('MiniGrid-', 'BabyAI-')))


def make(
  world_id: str, settings: Mapping[str, Any], seed: int
) -> dm_env.Environment:
  """Makes a world of single precision: see `make_env`.

  Args:
    world_id: See `ids`.
    settings: A value for each of `OPTIONS`.
    seed: At least 0.
  """
  return single_precision.SinglePrecision(
    gymnasium_adapter.GymnasiumAdapter(make_env(world_id, settings), seed)
  )


def make_batch(
  world_id: str, settings: Mapping[str, Any], seeds: Sequence[int]
) -> vector_batch.VectorBatch:
  """Makes a batch of worlds: see `make`."""
  envs = [make_env(world_id, settings) for _ in seeds]
  return vector_batch.VectorBatch(gymnasium_sources.GymnasiumLoop(envs, seeds))


def make_env(world_id: str, settings: Mapping[str, Any]) -> 'gymnasium.Env':
  """Makes a world without its mission, which is a text.

  The observation is a dict of 'image', a float32 array `[H, W, 3]` of the codes
  of object, color and state of each tile, and 'direction', where the agent
  looks.

  Args:
    world_id: See `ids`.
    settings: A value for each of `OPTIONS`, and `FILMED` if its picture is
      wanted: the whole world, with what the agent sees brighter.

  Raises:
    ImportError: If minigrid is not installed.
    ValueError: If there is no such world.
  """
  close_names.check('id', world_id, ids())
  gymnasium = extras.import_extra('gymnasium', 'minigrid')
  env = gymnasium_adapter.make_env(
    world_id, render_mode=settings.get('render_mode')
  )
  if settings['full']:
    wrappers = extras.import_extra('minigrid.wrappers', 'minigrid')
    env = wrappers.FullyObsWrapper(env)
  convert = _encode_one_hot if settings['one_hot'] else _encode_as_float
  spaces = gymnasium.spaces
  seen: Any = env.observation_space
  height, width, _ = seen['image'].shape
  depth = sum(_NUM_CODES) if settings['one_hot'] else len(_NUM_CODES)
  highest = 1 if settings['one_hot'] else max(_NUM_CODES) - 1
  space = spaces.Dict(
    direction=seen['direction'],
    image=spaces.Box(0, highest, (height, width, depth), np.float32),
  )
  # Worlds compare an action many times, with NumPy's integers slowly.
  env = gymnasium.wrappers.TransformAction(env, int, env.action_space)
  return gymnasium.wrappers.TransformObservation(
    env, _make_transformation(convert), space
  )


def _make_transformation(
  convert: Callable[[np.ndarray], np.ndarray],
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
  return lambda observation: {
    'direction': observation['direction'],
    'image': convert(observation['image']),
  }


def _encode_as_float(image: np.ndarray) -> np.ndarray:
  return image.astype(np.float32)


_ONE_HOT = [np.eye(n, dtype=np.float32) for n in _NUM_CODES]


def _encode_one_hot(image: np.ndarray) -> np.ndarray:
  """Maps codes `[H, W, 3]` to `[H, W, 21]`."""
  return np.concatenate(
    [table[image[..., i]] for i, table in enumerate(_ONE_HOT)], axis=-1
  )
