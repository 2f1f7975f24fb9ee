"""Imports objects of users' modules by name: 'my_package.my_module:thing'.

Built-in names are never looked up here, so modules of the current folder are
imported only if such a name is given.
"""

import contextlib
import importlib
import os
import pkgutil
import re
import sys
import threading
import traceback
import types
from collections.abc import Iterator, Sequence
from importlib import machinery
from typing import Any

from repertory.components.config import settings

_WORD = r'[^\W\d]\w*'
_DOTTED = rf'{_WORD}(?:\.{_WORD})*'
SYNTAX = re.compile(rf'(?P<module>{_DOTTED}):(?P<path>{_DOTTED})')

# Nodes in threads look up the same name at once. If two of them invalidate
# Python's import caches concurrently, one raises a KeyError.
_LOCK = threading.Lock()


class ImportPathError(ValueError):
  """A name cannot be resolved; the message says why, with near matches."""


class NoModuleError(ImportPathError):
  """The module does not exist."""


def find(name: str, others: Sequence[str] = ()) -> Any:
  """Returns the object that a name refers to.

  Args:
    name: A module and the path of an attribute in it, see `SYNTAX`.
    others: Names besides modules that the error may suggest.

  Raises:
    ImportPathError: If there is no such object, or its module raises.
  """
  module_name, _, path = name.partition(':')
  module = import_module(module_name, others)
  with errors_while(f'looking up {name!r}'):
    try:
      return pkgutil.resolve_name(name)
    except AttributeError as error:
      known = [one for one in dir(error.obj) if not one.startswith('_')]
      hint = settings.did_you_mean(error.name or path, known, 3)
      raise ImportPathError(
        f'module {module_name!r}{_in_file(module)} has no {path!r}.{hint}'
      ) from None


def import_module(name: str, others: Sequence[str] = ()) -> types.ModuleType:
  """Imports a module from the current folder, or from `sys.path`.

  If its top-level package is in the current folder, that folder is put first in
  `sys.path` and stays there, for later imports of the module and for processes
  that inherit `sys.path`. `python -m` does the same.

  Args:
    name: The dotted name.
    others: As for `find`.

  Raises:
    ImportPathError: If it does not exist, or raises; with the traceback.
  """
  if name == '__main__':
    raise ImportPathError(
      "'__main__' is another module in each process: use the name of the file."
    )
  folder = os.getcwd()
  with _LOCK:
    importlib.invalidate_caches()  # The module may be new.
    top = name.partition('.')[0]
    is_here = machinery.PathFinder.find_spec(top, [folder]) is not None
    if is_here and folder not in sys.path:
      sys.path.insert(0, folder)
  with errors_while(f'importing {name!r}'):
    try:
      return importlib.import_module(name)
    except ModuleNotFoundError as error:
      missing = error.name or ''
      if f'{name}.'.startswith(f'{missing}.'):
        raise NoModuleError(
          _describe_missing(missing, folder, others)
        ) from None
      raise  # The module's own import of another one failed.


def _describe_missing(missing: str, folder: str, others: Sequence[str]) -> str:
  parent, _, _ = missing.rpartition('.')
  where = f', neither in {folder} nor among the installed ones'
  places, prefix, known = [folder], '', [*others]
  if parent:  # Also of 'my_module.py'.
    where = f' in {parent!r}{_in_file(sys.modules[parent])}'
    places = getattr(sys.modules[parent], '__path__', [])
    prefix, known = f'{parent}.', [] if places else [parent]
  known += [module.name for module in pkgutil.iter_modules(places, prefix)]
  hint = settings.did_you_mean(missing, known)
  return f'there is no module {missing!r}{where}.{hint}'


def _in_file(module: types.ModuleType) -> str:
  file = getattr(module, '__file__', None)
  return f' ({file})' if file else ''


@contextlib.contextmanager
def errors_while(doing: str, *files: str) -> Iterator[None]:
  """Raises errors of a user's module as ImportPathError; see `trace`."""
  try:
    yield
  except (KeyboardInterrupt, ImportPathError):
    raise
  except BaseException as error:  # Including SystemExit.
    raise ImportPathError(
      f'{doing} failed:\n\n{trace(error, *files)}'
    ) from error


def trace(error: BaseException, *files: str) -> str:
  """Returns a traceback from the first line of the user's code.

  Leaves out this file, the import system and other `files` before that.
  """
  files = (__file__, importlib.__file__, *files)
  place = error.__traceback__
  while place is not None:
    file = place.tb_frame.f_code.co_filename
    if file not in files and 'importlib._bootstrap' not in file:
      break
    place = place.tb_next
  return ''.join(traceback.format_exception(type(error), error, place))
