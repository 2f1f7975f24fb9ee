"""Rendering of environments, for videos.

An environment can be rendered if it has a method `render`. It takes no
arguments and returns uint8 `[H, W, 3]` in RGB, or `[T, H, W, 3]` if its last
step or reset showed T frames. H and W must not change. The optional attribute
`render_fps` is the number of frames per second.

The `render` of a batch takes slots and returns a list with one result each.
Wrappers and batches forward both.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

# Frame rate of environments that do not define one.
DEFAULT_FPS = 30.0

# Advice for environments that were made without rendering.
HOW_TO_FILM = 'make it with `registry.make_factory(name).filmed()`'

# Images, one array per rendered environment.
Pictures = list[np.ndarray]


class NoPictureError(ValueError):
  """Raised if an environment does not support rendering, or it failed."""


def film(factory: Any) -> Any:
  """Returns a factory of the same environments with rendering enabled.

  Args:
    factory: If it has a method `filmed`, which returns such a factory, that is
      called; else its environments are expected to support rendering.
  """
  make_filmed = getattr(factory, 'filmed', None)
  return factory if make_filmed is None else make_filmed()


def render(owner: Any, *arguments: Any) -> Any:
  """Calls `render` of an environment, or of a batch.

  Args:
    owner: The environment or batch.
    *arguments: Arguments of `render`.

  Raises:
    NoPictureError: If it has no method `render`.
  """
  method = getattr(owner, 'render', None)
  if method is None:
    raise NoPictureError(f'{type(owner).__name__} has no method `render`')
  return method(*arguments)


def rate(owner: Any) -> float:
  """Returns the `render_fps` of an environment, or of a batch.

  Raises:
    NoPictureError: If it is not a positive number.
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
  """Renders some environments of a batch, and checks the results.

  Args:
    batch: See `batch.EnvironmentBatch`.
    slots: The slots to render.

  Returns:
    uint8 `[T, H, W, 3]` per slot, with T of at least 1.

  Raises:
    NoPictureError: If rendering fails, for any reason.
    ImportError: If a package that is needed for rendering is missing.
  """
  try:
    found = render(batch, slots)
  except (NoPictureError, ImportError):
    raise
  except Exception as error:
    raise NoPictureError(
      f'it could not be rendered: {type(error).__name__}: {error}'
    ) from error
  return [_check(picture) for picture in found]


def _check(picture: Any) -> np.ndarray:
  """Returns one image, or several, as `[T, H, W, 3]`."""
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
