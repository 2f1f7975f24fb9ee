"""Finds what stands in a module of the user's: 'my_package.my_module:thing'.

Who only tells of names of ours never comes here, so nothing of the current
folder is imported unless such a name is given.
"""

import contextlib
import glob
import importlib
import os
import pkgutil
import re
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator
from importlib import machinery
from typing import Any

from repertory.components import settings

_WORD = r'[^\W\d]\w*'
_DOTTED = rf'{_WORD}(?:\.{_WORD})*'
SYNTAX = re.compile(rf'(?P<module>{_DOTTED}):(?P<path>{_DOTTED})')

# Nodes in threads look up the same name at once. Of two that make Python forget
# what it knows of its paths, one raises a KeyError.
_LOCK = threading.Lock()


class NamedObjectError(ValueError):
  """A name leads to nothing; says where it ends, with the nearest."""


class NoModuleError(NamedObjectError):
  """There is no such module.

  Attributes:
    module: Its name.
  """

  def __init__(self, module: str, message: str):
    super().__init__(module, message)
    self.module = module

  def __str__(self) -> str:
    return self.args[1]


def find(name: str, fits: Callable[[Any], bool] | None = None) -> Any:
  """Returns what a name stands for.

  Args:
    name: As `SYNTAX` has it: a module, and the way to an attribute of it.
    fits: Whether something may be meant where there is nothing of that name; by
      default all that is called nearly so may.

  Raises:
    NamedObjectError: If there is no such thing, or its module raises.
  """
  module, _, path = name.partition(':')
  found: Any = import_module(module)
  where = f'module {module!r}{_in_file(found)}'
  for part in path.split('.'):
    with _telling(f'looking up {name!r}'):
      if not hasattr(found, part):
        raise NamedObjectError(
          f'{where} has no {part!r}.{_describe_near(part, found, fits)}'
          f'{_describe_other(module)}'
        )
      found = getattr(found, part)
    where = repr(part)
  return found


def import_module(name: str) -> types.ModuleType:
  """Imports a module from the current folder, or from where Python looks.

  If its first part is in the current folder, that becomes the first of
  `sys.path`, and stays there: what the module imports later, and processes that
  take over `sys.path`, find their way. So it is with `python -m`.

  Args:
    name: With dots.

  Raises:
    NamedObjectError: If there is none, or it raises; with the traceback.
  """
  if name == '__main__':
    raise NamedObjectError(
      "'__main__' is another module in each process: take the name of the file."
    )
  folder = os.getcwd()
  with _LOCK:
    importlib.invalidate_caches()  # It may be new.
    if is_in(folder, name) and folder not in sys.path:
      sys.path.insert(0, folder)
  with _telling(f'importing {name!r}'):
    try:
      return importlib.import_module(name)
    except ModuleNotFoundError as error:
      missing = error.name or ''
      if f'{name}.'.startswith(f'{missing}.'):
        raise NoModuleError(
          missing, _describe_missing(missing, folder)
        ) from None
      raise  # It is another one, which the module imports.


def is_in(folder: str, name: str) -> bool:
  """Whether the first part of a module's name is in a folder."""
  top = name.partition('.')[0]
  return machinery.PathFinder.find_spec(top, [folder]) is not None


def folder_above(path: str, name: str) -> str | None:
  """Returns the nearest folder above a path that has a module; None if none.

  Args:
    path: Where to begin.
    name: The module's, with dots.
  """
  folder = os.path.abspath(path)
  while not is_in(folder, name):
    if folder == os.path.dirname(folder):
      return None
    folder = os.path.dirname(folder)
  return folder


def _describe_missing(missing: str, folder: str) -> str:
  parent, _, _ = missing.rpartition('.')
  if not parent:
    hint = settings.did_you_mean(missing, _modules_in(folder))
    return (
      f'there is no module {missing!r}, neither in {folder} nor among what is '
      f'installed.{hint}'
    )
  package = sys.modules[parent]
  told = f'there is no module {missing!r} in {parent!r}{_in_file(package)}'
  paths = getattr(package, '__path__', None)
  if paths is None:
    return f'{told}, which is no package. Did you mean {parent!r}?'
  known = [f'{parent}.{module.name}' for module in pkgutil.iter_modules(paths)]
  return f'{told}.{settings.did_you_mean(missing, known)}'


def _describe_near(
  part: str, found: Any, fits: Callable[[Any], bool] | None
) -> str:
  """Says what may be meant: of few things that fit, all."""
  names = [each for each in dir(found) if not each.startswith('_')]
  if fits is None:
    return settings.did_you_mean(part, names, 3)
  names = [each for each in names if fits(getattr(found, each))]
  hint = settings.did_you_mean(part, names, 3)
  if hint or not 1 <= len(names) <= 3:
    return hint
  return f' Did you mean {" or ".join(map(repr, names))}?'


def _describe_other(module: str) -> str:
  """Says that the current folder has another module of that name, if so."""
  top = module.partition('.')[0]
  spec = machinery.PathFinder.find_spec(top, [os.getcwd()])
  if spec is None or spec.origin is None:
    return ''
  loaded = getattr(sys.modules[top], '__file__', None) or ''
  if os.path.realpath(loaded) == os.path.realpath(spec.origin):
    return ''
  return f' {spec.origin} is another one: give it a name that is not taken.'


def _modules_in(folder: str) -> set[str]:
  """Returns the modules and packages of a folder; imports none."""
  found = {module.name for module in pkgutil.iter_modules([folder])}
  # A package needs no `__init__.py`.
  files = glob.glob('*/*.py', root_dir=folder)
  return found | {os.path.dirname(file) for file in files}


def _in_file(module: types.ModuleType) -> str:
  file = getattr(module, '__file__', None)
  return f' ({file})' if file else ''


@contextlib.contextmanager
def _telling(doing: str) -> Iterator[None]:
  """Says of what a user's module raises where that was.

  Raises:
    NamedObjectError: With the traceback.
  """
  try:
    yield
  except (KeyboardInterrupt, NamedObjectError):
    raise
  except BaseException as error:  # Also what would end the program.
    raise NamedObjectError(f'{doing} failed:\n\n{trace(error)}') from error


def trace(error: BaseException, *files: str) -> str:
  """Returns an error's traceback from the first line of the user's.

  Args:
    *files: Python files on the way there, which need not be shown.
  """
  files = (__file__, importlib.__file__, *files)
  place = error.__traceback__
  while place is not None:
    file = place.tb_frame.f_code.co_filename
    if file not in files and 'importlib._bootstrap' not in file:
      break
    place = place.tb_next
  return ''.join(traceback.format_exception(type(error), error, place))
