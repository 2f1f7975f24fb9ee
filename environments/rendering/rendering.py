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
HOW_TO_RENDER = 'make it with `registry.make_factory(name).with_rendering()`'

# One array per rendered environment.
Frames = list[np.ndarray]


class RenderError(ValueError):
  """Raised if an environment does not support rendering, or it failed."""


def enable(factory: Any) -> Any:
  """Returns the `with_rendering()` of a factory, or else the factory itself.

  Without the method, its environments are expected to render.
  """
  make = getattr(factory, 'with_rendering', None)
  return factory if make is None else make()


def render(owner: Any, *arguments: Any) -> Any:
  """Calls `render` of an environment, or of a batch, if it has one.

  Raises:
    RenderError: If it has no method `render`.
  """
  method = getattr(owner, 'render', None)
  if method is None:
    raise RenderError(f'{type(owner).__name__} has no method `render`')
  return method(*arguments)


def rate(owner: Any) -> float:
  """Returns the `render_fps` of an environment, or of a batch.

  Raises:
    RenderError: If it is not a positive number.
  """
  found = getattr(owner, 'render_fps', None)
  if found is None:
    return DEFAULT_FPS
  if not isinstance(found, (int, float, np.number)) or not 0 < found < math.inf:
    raise RenderError(
      f'the `render_fps` of {type(owner).__name__} must be a positive number, '
      f'got {found!r}'
    )
  return float(found)


def take(batch: Any, slots: Sequence[int]) -> Frames:
  """Renders some slots of a batch; returns uint8 `[T, H, W, 3]` for each.

  T is at least 1.

  Raises:
    RenderError: If rendering fails, for any reason.
    ImportError: If a package that is needed for rendering is missing.
  """
  try:
    found = render(batch, slots)
  except (RenderError, ImportError):
    raise
  except Exception as error:
    raise RenderError(
      f'it could not be rendered: {type(error).__name__}: {error}'
    ) from error
  return [_check(frames) for frames in found]


def _check(found: Any) -> np.ndarray:
  """Returns one frame, or several, as `[T, H, W, 3]`."""
  what = repr(found)[:200]
  if isinstance(found, np.ndarray):
    frames = found[np.newaxis] if found.ndim == 3 else found
    is_color = frames.ndim == 4 and frames.shape[-1] == 3
    if is_color and frames.dtype == np.uint8 and frames.size:
      return frames
    what = f'{found.dtype} {list(found.shape)}'
  raise RenderError(
    f'its `render` must return uint8 [H, W, 3] or [T, H, W, 3], found {what}'
  )
