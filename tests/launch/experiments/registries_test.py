"""Tests of registries."""

import importlib
import sys

import pytest

from repertory.launch.experiments import registries

_MODULE = """
import own_entries
own_entries.REGISTRY.register({name!r}, {name!r}, {rank})
if own_entries.fails:
  raise ImportError('no engine')
"""


@pytest.fixture(name='own_entries')
def _own_entries(tmp_path, monkeypatch):
  folder = tmp_path / 'own_entries'
  folder.mkdir()
  (folder / '__init__.py').write_text('fails = False\n')
  for name, rank in (('anna', 2), ('otto', 1)):
    (folder / f'{name}.py').write_text(_MODULE.format(name=name, rank=rank))
  monkeypatch.syspath_prepend(str(tmp_path))
  own_entries = importlib.import_module('own_entries')
  own_entries.REGISTRY = registries.Registry('own_entries', 'palindrome')
  yield own_entries
  for name in [name for name in sys.modules if name.startswith('own_entries')]:
    del sys.modules[name]


def test_finds_all_and_lists_them_by_rank(own_entries):
  assert list(own_entries.REGISTRY.entries) == ['otto', 'anna']
  assert own_entries.REGISTRY.get('otto') == 'otto'


def test_imports_the_module_of_a_name_only(own_entries):
  assert own_entries.REGISTRY.get('otto') == 'otto'
  assert 'own_entries.anna' not in sys.modules


def test_unknown_name_is_refused_with_the_nearest(own_entries):
  with pytest.raises(ValueError, match=r"of otto, anna; got 'oto'.*'otto'"):
    own_entries.REGISTRY.get('oto')


def test_failing_import_is_raised_each_time(own_entries):
  own_entries.fails = True
  for _ in range(2):
    with pytest.raises(ImportError, match='no engine'):
      _ = own_entries.REGISTRY.entries
  own_entries.fails = False
  assert list(own_entries.REGISTRY.entries) == ['otto', 'anna']
