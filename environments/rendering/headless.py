"""Headless rendering with MuJoCo and pygame."""

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from ctypes.util import find_library

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


@contextlib.contextmanager
def using_mujoco() -> Iterator[None]:
  """Sets `MUJOCO_GL` for the block if it is unset and there is no display.

  dm_control selects its backend on import; if it is imported already, it
  selects again.

  Raises:
    RenderError: For any error of the block; OpenGL's have many types.
  """
  try:
    if not os.environ.get(VARIABLE) and not _has_display():
      found = [name for name in _LIBRARIES if find_library(_LIBRARIES[name])]
      os.environ[VARIABLE] = found[0] if found else 'egl'
      if (chosen := sys.modules.get('dm_control._render')) is not None:
        importlib.reload(chosen)
    yield
  except Exception as error:
    raise rendering.RenderError(
      f'MuJoCo cannot render with {VARIABLE}={os.environ.get(VARIABLE, "")} '
      f'({type(error).__name__}: {error}); it may be egl or osmesa, in '
      "Debian's packages libegl1 with libegl-mesa0, and libosmesa6, or glfw "
      'where there is a display'
    ) from error


def _has_display() -> bool:
  variables = ('DISPLAY', 'WAYLAND_DISPLAY')
  return sys.platform == 'darwin' or any(map(os.environ.get, variables))
