"""Lets MuJoCo and pygame draw where there is no display."""

import contextlib
import ctypes.util
import importlib
import os
import sys
from collections.abc import Iterator

from repertory.environments import pictures

# What MuJoCo, dm_control and Gymnasium ask which OpenGL to use. Without it they
# take GLFW, which needs a display.
VARIABLE = 'MUJOCO_GL'

# What needs no display, and the library that each is in; the faster one first.
_LIBRARIES = {'egl': 'EGL', 'osmesa': 'OSMesa'}


def prepare_pygame() -> None:
  """Sets `SDL_VIDEODRIVER` if nobody has, and there is no display.

  Pygame would find out by itself, but calls that an error.
  """
  if not _has_display():
    os.environ.setdefault('SDL_VIDEODRIVER', 'dummy')


def prepare_mujoco() -> None:
  """Sets `MUJOCO_GL` if nobody has, and there is no display.

  dm_control chooses when it is imported; if it was before, it chooses again.

  Raises:
    NoPictureError: If there is nothing to draw with.
  """
  if os.environ.get(VARIABLE) or _has_display():
    return
  for name, library in _LIBRARIES.items():
    if ctypes.util.find_library(library):
      os.environ[VARIABLE] = name
      break
  else:
    raise pictures.NoPictureError(
      'MuJoCo draws with OpenGL, for which there is neither a display nor one '
      f'of the libraries {" and ".join(_LIBRARIES.values())}; on Debian they '
      'are in the packages libegl1 with libegl-mesa0, and libosmesa6'
    )
  chosen = sys.modules.get('dm_control._render')
  if chosen is not None:
    with explaining():
      importlib.reload(chosen)


@contextlib.contextmanager
def explaining() -> Iterator[None]:
  """Says of errors of OpenGL, which are of many types, how to choose another.

  Raises:
    NoPictureError: For any of them.
  """
  try:
    yield
  except Exception as error:
    raise pictures.NoPictureError(
      f'MuJoCo cannot draw with {VARIABLE}={os.environ.get(VARIABLE, "")} '
      f'({type(error).__name__}: {error}); it may be egl or osmesa, or glfw '
      'where there is a display'
    ) from error


def _has_display() -> bool:
  return any(map(os.environ.get, ('DISPLAY', 'WAYLAND_DISPLAY')))
