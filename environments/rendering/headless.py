"""Headless rendering with MuJoCo and pygame."""

import contextlib
import ctypes.util
import importlib
import os
import sys
from collections.abc import Iterator

from repertory.environments.rendering import rendering

# Environment variable with the OpenGL backend of MuJoCo, dm_control and
# Gymnasium. Their default, GLFW, needs a display.
VARIABLE = 'MUJOCO_GL'

# Backends that need no display, with their libraries; the faster one first.
_LIBRARIES = {'egl': 'EGL', 'osmesa': 'OSMesa'}


def prepare_pygame() -> None:
  """Sets `SDL_VIDEODRIVER` if it is unset and there is no display.

  Pygame would fall back by itself, but reports that as an error.
  """
  if not _has_display():
    os.environ.setdefault('SDL_VIDEODRIVER', 'dummy')


def prepare_mujoco() -> None:
  """Sets `MUJOCO_GL` if it is unset and there is no display.

  dm_control selects its backend on import; if it is imported already, it
  selects again.

  Raises:
    RenderError: If no OpenGL library is found.
  """
  if os.environ.get(VARIABLE) or _has_display():
    return
  for name, library in _LIBRARIES.items():
    if ctypes.util.find_library(library):
      os.environ[VARIABLE] = name
      break
  else:
    raise rendering.RenderError(
      'MuJoCo renders with OpenGL, but found neither a display nor one '
      f'of the libraries {" and ".join(_LIBRARIES.values())}; on Debian they '
      'are in the packages libegl1 with libegl-mesa0, and libosmesa6'
    )
  chosen = sys.modules.get('dm_control._render')
  if chosen is not None:
    with explaining():
      importlib.reload(chosen)


@contextlib.contextmanager
def explaining() -> Iterator[None]:
  """Converts OpenGL errors, of many types, to one that names the alternatives.

  Raises:
    RenderError: For any of them.
  """
  try:
    yield
  except Exception as error:
    raise rendering.RenderError(
      f'MuJoCo cannot render with {VARIABLE}={os.environ.get(VARIABLE, "")} '
      f'({type(error).__name__}: {error}); it may be egl or osmesa, or glfw '
      'where there is a display'
    ) from error


def _has_display() -> bool:
  return any(map(os.environ.get, ('DISPLAY', 'WAYLAND_DISPLAY')))
