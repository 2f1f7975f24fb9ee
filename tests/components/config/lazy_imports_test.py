"""Tests of `components/config/lazy_imports.py`."""

import importlib
import shutil
import sys

import pytest

from repertory.components.config import lazy_imports

_PACKAGE = """
from typing import TYPE_CHECKING
from repertory.components.config import lazy_imports
if TYPE_CHECKING:
  from own_package import letters
  from own_package.numbers import Number
  from own_package.words import *
__all__ = ['WORD', 'say']
__getattr__, __dir__ = lazy_imports.modules(__name__)
"""


@pytest.fixture(name='own_package', params=['folder', 'zip'])
def _own_package(request, tmp_path, monkeypatch):
  folder = tmp_path / 'root' / 'own_package'
  folder.mkdir(parents=True)
  (folder / '__init__.py').write_text(_PACKAGE)
  (folder / 'numbers.py').write_text('class Number: pass\n')
  (folder / 'letters.py').write_text('ALPHA = 1\n')
  (folder / 'words.py').write_text('WORD = 1\ndef say(): pass\nHIDDEN = 2\n')
  (folder / 'broken.py').write_text('import not_there_at_all\n')
  path = folder.parent
  if request.param == 'zip':
    path = shutil.make_archive(str(tmp_path / 'own'), 'zip', path)
  monkeypatch.syspath_prepend(str(path))
  lazy_imports._exports.cache_clear()  # By the name of the package.
  yield importlib.import_module('own_package')
  for name in [name for name in sys.modules if name.startswith('own_package')]:
    del sys.modules[name]


def test_imports_what_is_asked_for(own_package):
  assert 'own_package.letters' not in sys.modules
  assert own_package.letters.ALPHA == 1
  assert 'own_package.numbers' not in sys.modules
  assert own_package.Number is sys.modules['own_package.numbers'].Number
  assert 'own_package.words' not in sys.modules
  assert own_package.say is sys.modules['own_package.words'].say


def test_lists_what_can_be_asked_for(own_package):
  expected = {'Number', 'numbers', 'letters', 'broken', 'WORD', 'say'}
  assert expected <= set(dir(own_package))
  assert 'own_package.numbers' not in sys.modules


def test_others_are_no_attributes(own_package):
  assert not hasattr(own_package, 'HIDDEN')
  with pytest.raises(AttributeError, match=r"'own_package'.*'absent'"):
    own_package.absent  # noqa: B018
  with pytest.raises(ImportError, match='absent'):
    exec('from own_package import absent')
