"""Tests of packaging: shipped files and pinned versions."""

import configparser
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from packaging import requirements, specifiers, utils

import repertory
from support.system import stacks

_ROOT = pathlib.Path(__file__).resolve().parents[1]

# Generated files in the checkout.
_GENERATED = frozenset({'build', 'dist', 'runs'})

# `name==version`, and perhaps the platforms it is for. Neither an option nor a
# host nor a path has this form.
_PIN = re.compile(r'([a-z0-9-]+)==([a-z0-9.+!]+)( ; [^/@]+)?')


def _setup() -> configparser.ConfigParser:
  parser = configparser.ConfigParser()
  with open(_ROOT / 'setup.cfg', encoding='utf-8') as file:
    parser.read_file(file)
  return parser


def _lines(text: str) -> list[str]:
  return [line.strip() for line in text.splitlines() if line.strip()]


def _folders_with(filename_pattern: str) -> set[str]:
  """Returns the folders with such a file, as package names."""
  found = set()
  for folder, subfolders, filenames in os.walk(_ROOT):
    subfolders[:] = [
      name
      for name in subfolders
      if not name.startswith('.')
      and (folder != str(_ROOT) or name not in _GENERATED)
    ]
    if any(re.fullmatch(filename_pattern, name) for name in filenames):
      parts = pathlib.Path(folder).relative_to(_ROOT).parts
      found.add('.'.join(('repertory', *parts)))
  return found


def _required(extra: str, lines: str, version: str) -> dict[str, str]:
  """Returns the requirements for a Python version: versions by name."""
  environment = {
    'python_version': version, 'extra': extra,
    'sys_platform': 'linux', 'platform_machine': 'x86_64',
  }  # fmt: skip
  found = map(requirements.Requirement, _lines(lines))
  return {
    utils.canonicalize_name(one.name): str(one.specifier)
    for one in found
    if one.marker is None or one.marker.evaluate(environment)
  }


class TestPackages:
  @pytest.fixture
  def packages(self):
    return _lines(_setup()['options']['packages'])

  def test_list_is_sorted_and_equals_folders_with_init(self, packages):
    assert packages == sorted(_folders_with(r'__init__\.py'))

  def test_no_folder_of_a_package_lacks_its_init(self, packages):
    # Such a folder imports from a checkout but is not shipped.
    tops = {package for package in packages if package.count('.') == 1}
    folders = {
      folder
      for folder in _folders_with(r'.*\.py')
      if '.'.join(folder.split('.')[:2]) in tops
    }
    assert folders <= set(packages)

  def test_root_holds_no_other_module(self):
    # It would be shipped as `repertory.<name>`.
    assert [path.name for path in _ROOT.glob('*.py')] == ['__init__.py']

  def test_version_is_told_once(self):
    assert _setup()['metadata']['version'] == repertory.__version__


@pytest.mark.parametrize(('version', 'filename'), stacks.CONSTRAINTS.items())
class TestConstraints:
  @pytest.fixture(autouse=True)
  def _set_up(self, filename):
    text = (_ROOT / filename).read_text(encoding='utf-8')
    self.lines = _lines(text)
    self.pins = dict(line.split(' ;')[0].split('==') for line in self.lines)

  def test_lines_are_bare_pins(self, version):
    assert self.lines
    for line in self.lines:
      assert re.search(f'^{_PIN.pattern}$', line)

  def test_every_dependency_is_pinned_as_setup_allows(self, version):
    setup = _setup()
    extras = {
      '': setup['options']['install_requires'],
      **setup['options.extras_require'],
    }
    del extras['gpu']  # Its TensorFlow shares its files with the CPU's.
    for extra, lines in extras.items():
      for name, allowed in _required(extra, lines, version).items():
        assert self.pins[name] in specifiers.SpecifierSet(allowed)

  def test_only_the_first_stack_has_launchpad(self, version):
    # Their wheels, and those of their dependents, end with Python 3.10.
    assert ('dm-launchpad' in self.pins) == (version == '3.10')

  def test_setuptools_still_has_pkg_resources(self, version):
    # TensorBoard of the first two stacks imports it and fails without it.
    major = int(self.pins['setuptools'].split('.')[0])
    assert major < 82


class TestScripts:
  @pytest.mark.parametrize('path', ['.ci/run', '.ci/set_up'])
  def test_is_executable(self, path):
    assert os.access(_ROOT / path, os.X_OK), path

  @pytest.mark.parametrize('venv', ['.venv311', 'env', '.venv/../../theirs'])
  def test_sets_up_no_folder_but_its_own(self, venv, tmp_path):
    """A shell may have a variable VENV for another purpose."""
    script = tmp_path / 'checkout' / '.ci' / 'set_up'
    for folder in (script.parent, tmp_path / 'theirs'):
      folder.mkdir(parents=True)
    shutil.copy(_ROOT / '.ci' / 'set_up', script)
    for filename in ('setup.cfg', *stacks.CONSTRAINTS.values()):
      (tmp_path / 'checkout' / filename).touch()
    ended = subprocess.run(
      [script],
      # Without any Python it fails before it deletes the old environment.
      env={**os.environ, 'VENV': venv, 'PYTHON': '/nowhere'},
      check=False,
      timeout=60,
      stderr=subprocess.PIPE,
      text=True,
    )
    assert ended.returncode == 1
    if re.fullmatch(r'(\.venv\w*)?', venv):
      assert 'PYTHON=/nowhere is not a Python' in ended.stderr
    else:
      assert f"folder .venv* of this checkout, got '{venv}'" in ended.stderr
