"""Pictures of environments, for films.

An environment has a picture if it has a method `render`. It takes nothing and
returns uint8 `[H, W, 3]` in RGB, or `[T, H, W, 3]` if its last step, or reset,
showed T pictures one after the other. H and W stay the same. `render_fps`,
an attribute that it may have, tells how many pictures are a second.

What steps many environments at once takes their numbers and returns a list of
as many pictures. Wrappers and batches pass all this on.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

# Of environments that do not tell.
DEFAULT_FPS = 30.0

# What to do about environments that were made without one.
HOW_TO_FILM = 'make it of `registry.make_factory(name).filmed()`'

# Pictures, one for each of some environments.
Pictures = list[np.ndarray]


class NoPictureError(ValueError):
  """An environment has no picture, or it could not be drawn."""


def film(factory: Any) -> Any:
  """Returns the factory of the same environments, made to have a picture.

  Args:
    factory: If it has a method `filmed`, which returns such a factory, that is
      asked; else its environments are expected to have one.
  """
  make_filmed = getattr(factory, 'filmed', None)
  return factory if make_filmed is None else make_filmed()


def render(owner: Any, *arguments: Any) -> Any:
  """Returns what the `render` of an environment, or of a batch, does.

  Args:
    owner: The one that may have it.
    *arguments: What it takes.

  Raises:
    NoPictureError: If it has none.
  """
  method = getattr(owner, 'render', None)
  if method is None:
    raise NoPictureError(f'{type(owner).__name__} has no method `render`')
  return method(*arguments)


def rate(owner: Any) -> float:
  """Returns the `render_fps` of an environment, or of a batch.

  Raises:
    NoPictureError: If it is no positive number.
  """
  found = getattr(owner, 'render_fps', None)
  if found is None:
    return DEFAULT_FPS
  try:
    number = float(found)
  except (TypeError, ValueError):
    number = math.nan
  if not 0 < number < math.inf:
    raise NoPictureError(
      f'the `render_fps` of {type(owner).__name__} must be a positive number, '
      f'got {found!r}'
    )
  return number


def take(batch: Any, slots: Sequence[int]) -> Pictures:
  """Takes pictures of some environments of a batch, and checks them.

  Args:
    batch: See `batch.EnvironmentBatch`.
    slots: Which.

  Returns:
    uint8 `[T, H, W, 3]` of each, T of at least 1.

  Raises:
    NoPictureError: If there are none, whatever the reason.
    ImportError: If a package is missing that draws them.
  """
  try:
    found = render(batch, slots)
  except (NoPictureError, ImportError):
    raise
  except Exception as error:
    raise NoPictureError(
      f'its picture could not be drawn: {type(error).__name__}: {error}'
    ) from error
  return [_check(picture) for picture in found]


def _check(picture: Any) -> np.ndarray:
  """Returns a picture, or several, as `[T, H, W, 3]`."""
  what = repr(picture)[:200]
  if isinstance(picture, np.ndarray):
    frames = picture[np.newaxis] if picture.ndim == 3 else picture
    is_color = frames.ndim == 4 and frames.shape[-1] == 3
    if is_color and frames.dtype == np.uint8 and frames.size:
      return frames
    what = f'{picture.dtype} {list(picture.shape)}'
  raise NoPictureError(
    f'its `render` must return uint8 [H, W, 3] or [T, H, W, 3], found {what}'
  )
