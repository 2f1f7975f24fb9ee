"""Tests of `components/config/import_paths.py`."""

import os
import re
import sys
import threading
from concurrent import futures

import pytest

from repertory.components.config import import_paths


def test_syntax():
  match = import_paths.SYNTAX.fullmatch('a.b_1.é:D.e')
  assert match.groupdict() == {'module': 'a.b_1.é', 'path': 'D.e'}


@pytest.mark.parametrize(
  'name',
  ['a', ':a', 'a:b:c', '1:a', 'a.:b', 'gym:A-v1'],
)
def test_no_syntax(name):
  assert import_paths.SYNTAX.fullmatch(name) is None


class TestFind:
  def test_in_the_current_folder(self, write_module, tmp_path):
    write_module('own_a', 'class Outer:\n  inner = 7')
    assert str(tmp_path) not in sys.path
    assert import_paths.find('own_a:Outer.inner') == 7
    # For processes that inherit `sys.path`, and once only.
    assert import_paths.find('own_a:Outer') is sys.modules['own_a'].Outer
    assert sys.path[0] == str(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1

  def test_in_a_package(self, write_module):
    write_module(
      'own_b.deep.module', 'from own_b import other\nthing = other.thing'
    )
    write_module('own_b.other', 'thing = [1]')
    assert import_paths.find('own_b.deep.module:thing') == [1]

  def test_the_folder_comes_first(self, write_module, tmp_path, monkeypatch):
    write_module('elsewhere.own_c', 'thing = "elsewhere"')
    write_module('own_c', 'thing = "here"')
    monkeypatch.syspath_prepend(tmp_path / 'elsewhere')
    assert import_paths.find('own_c:thing') == 'here'

  def test_what_comes_later_is_found(self, write_module):
    with pytest.raises(import_paths.NoModuleError):
      import_paths.find('own_d:thing')
    write_module('own_d', 'thing = 1')
    assert import_paths.find('own_d:thing') == 1

  def test_by_nodes_in_threads_at_once(
    self, write_module, tmp_path, monkeypatch
  ):
    write_module('own_m', 'thing = 1')
    # Each of these folders, which hold no module, is forgotten by one thread.
    for number in range(30_000):
      monkeypatch.setitem(sys.path_importer_cache, f'/nowhere/{number}', None)
    start = threading.Barrier(4)

    def find(_):
      start.wait(60)
      return import_paths.find('own_m:thing')

    with futures.ThreadPoolExecutor(4) as threads:
      found = list(threads.map(find, range(4)))
    assert found == [1] * 4
    assert sys.path.count(str(tmp_path)) == 1


class TestErrors:
  def check(self, name, *parts):
    with pytest.raises(import_paths.ImportPathError) as raised:
      import_paths.find(name)
    for part in parts:
      assert part in str(raised.value)
    return raised.value

  def test_no_module(self, write_module, tmp_path):
    write_module('own_c', '')
    self.check('own_d:x', f"no module 'own_d', neither in {tmp_path} nor")

  def test_no_module_in_a_package(self, write_module, tmp_path):
    write_module('own_e.__init__', '')
    file = tmp_path / 'own_e' / '__init__.py'
    self.check('own_e.iner:x', f"no module 'own_e.iner' in 'own_e' ({file})")

  def test_no_attribute(self, write_module, tmp_path):
    write_module(
      'own_f', 'class Outer:\n  def make(): pass\n_hidden = 1\nhide = 2'
    )
    file = tmp_path / 'own_f.py'
    self.check('own_f:Outr', f"'own_f' ({file}) has no 'Outr'", "'Outer'?")
    self.check('own_f:Outer.mak', "has no 'Outer.mak'.", "mean 'make'?")
    error = self.check('own_f:hidden')
    assert '_hidden' not in str(error)

  @pytest.mark.parametrize(
    ('source', 'line', 'message'),
    [
      ('import unheard_of', 'line 1, in <module>', 'unheard_of'),
      ('\n\n1 / 0', 'line 3, in <module>', 'ZeroDivisionError'),
      ('def f(:', 'line 1', 'SyntaxError'),
      ('import sys\nsys.exit(3)', 'line 2, in <module>', 'SystemExit: 3'),
    ],
  )
  def test_import_raises(self, write_module, source, line, message):
    write_module('own_g', source)
    error = self.check('own_g:x', "importing 'own_g' failed", line, message)
    assert not isinstance(error, import_paths.NoModuleError)
    # Nothing of the import machinery.
    files = re.findall('File "(.*?)"', str(error))
    assert {os.path.basename(file) for file in files} == {'own_g.py'}

  def test_looking_up_raises(self, write_module):
    write_module('own_h', 'def __getattr__(name):\n  import unheard_of')
    self.check('own_h:x', "looking up 'own_h:x' failed", 'unheard_of')

  def test_interruption_is_no_failure(self, write_module):
    write_module('own_i', 'raise KeyboardInterrupt')
    with pytest.raises(KeyboardInterrupt):
      import_paths.find('own_i:x')

  def test_main(self):
    self.check('__main__:x', 'another module in each process')
