"""Guards what no import would notice: what is shipped, and what is pinned."""

import configparser
import os
import pathlib
import re

import pytest

import repertory

_ROOT = pathlib.Path(__file__).resolve().parents[1]

# What is made in the checkout rather than written there.
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
  """Returns the folders that hold such a file as the packages they would be."""
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


def _requirement(line: str) -> tuple[str, str]:
  """Splits `dm-reverb ==0.7.2` into its normalized name and the rest."""
  match = re.fullmatch(r'([A-Za-z0-9._-]+)(\[[^]]*\])?\s*(.*)', line)
  if match is None:
    raise ValueError(f'Expected a requirement, found {line!r}.')
  return re.sub(r'[-_.]+', '-', match[1]).lower(), match[3]


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


class TestConstraints:
  @pytest.fixture(autouse=True)
  def _set_up(self):
    text = (_ROOT / 'constraints.txt').read_text(encoding='utf-8')
    self.lines = _lines(text)
    self.pins = dict(line.split(' ;')[0].split('==') for line in self.lines)

  def test_lines_are_bare_pins(self):
    assert self.lines
    for line in self.lines:
      assert re.search(f'^{_PIN.pattern}$', line)

  def test_every_dependency_is_pinned_as_setup_allows(self):
    setup = _setup()
    required = _lines(setup['options']['install_requires'])
    for extra, lines in setup['options.extras_require'].items():
      if extra != 'gpu':  # Its TensorFlow shares its files with the CPU's.
        required += _lines(lines)
    for name, specifier in map(_requirement, required):
      assert name in self.pins
      if specifier.startswith('=='):
        assert self.pins[name] == specifier.removeprefix('==')

  def test_setuptools_still_has_pkg_resources(self):
    # TensorBoard 2.8 imports it and dies without.
    major = int(self.pins['setuptools'].split('.')[0])
    assert major < 82


class TestScripts:
  @pytest.mark.parametrize('path', ['.ci/run', '.ci/set_up'])
  def test_is_executable(self, path):
    assert os.access(_ROOT / path, os.X_OK), path
