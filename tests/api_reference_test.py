"""Tests that the API reference has an entry for every public name.

It reads the sources instead of running Sphinx's `automodule`.
"""

import ast
import functools
import pathlib
import re

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_PAGES = '\n'.join(
  path.read_text('utf-8') for path in sorted(_ROOT.glob('docs/api/*.md'))
)
_FOLDERS = ('agents', 'components', 'environments', 'launch')

# Internal modules beside those on the pages.
_INTERNAL = {
  'components': set(),
  'components/actions': set(),
  'components/config': {'choices', 'lazy_imports', 'regular_files'},
  'components/network': {'callers', 'client_stream', 'network_interfaces'},
  'components/runtime': {
    'devices', 'image_layouts', 'mask_layouts', 'nests', 'notices',
    'numpy_functions', 'stacked_array', 'versions', 'worker_thread',
    'xla_cache',
  },
  'environments': set(),
  'environments/adapters': {
    'extras', 'gymnasium_sources', 'gymnasium_spaces',
  },
  'environments/batches': {'layout', 'mask_check'},
  'environments/games': {'game'},
  'environments/registry': {
    'families', 'name_options', 'user_environments', 'wrapping',
  },
  'environments/rendering': {'headless'},
  'environments/tensor': {'trigonometry'},
  'environments/values': {'casting'},
  'agents': set(),
  'agents/actor_critic': set(),
  'agents/interface': {'normalizing'},
  'agents/replay': set(),
  'agents/unrolls': set(),
}  # fmt: skip


def _entries(kinds: str) -> list[str]:
  pattern = rf'(?m)^\.\. (?:{kinds}):: repertory\.(\S+)$'
  return re.findall(pattern, _PAGES)


_MODULES = _entries('automodule')
_NAMES = set(_entries(r'autoclass|autofunction|autoexception|py:data|py:class'))


@functools.cache
def _parse(module: str) -> tuple[ast.Module, bool]:
  """Returns a module's syntax tree, and whether it is a package."""
  folder = _ROOT / module.replace('.', '/')
  path = folder / '__init__.py'
  is_package = path.exists()  # A folder may be a cache that was left.
  path = path if is_package else folder.with_suffix('.py')
  return ast.parse(path.read_text('utf-8')), is_package


def _exported(tree: ast.Module) -> list[str]:
  """Returns the names in a module's `__all__`."""
  for node in tree.body:
    if isinstance(node, ast.Assign):
      names = [ast.unparse(target) for target in node.targets]
      if names == ['__all__']:
        return list(ast.literal_eval(node.value))
  return []


@functools.cache
def _sources(tree: ast.Module) -> dict[str, str]:
  """Returns the module from which each name is imported."""
  found = {}
  for node in ast.walk(tree):
    if isinstance(node, ast.ImportFrom):
      module = (node.module or '').partition('.')[2]
      names = [alias.asname or alias.name for alias in node.names]
      if names == ['*']:
        names = [*_defined(_parse(module)[0]), *_assigned(_parse(module)[0])]
      found |= dict.fromkeys(names, module)
  return found


def _defined(tree: ast.Module) -> dict[str, str]:
  """Returns the docstrings of public functions and classes."""
  return {
    node.name: ast.get_docstring(node) or ''
    for node in tree.body
    if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    and not node.name.startswith('_')
  }


def _assigned(tree: ast.Module) -> set[str]:
  """Returns the names of a module's constants."""
  return {
    target.id
    for node in tree.body
    if isinstance(node, (ast.Assign, ast.AnnAssign))
    for target in getattr(node, 'targets', None) or [node.target]
    if isinstance(target, ast.Name)
  }


def _origin(module: str, name: str) -> tuple[str, str]:
  """Returns the module that defines a possibly re-exported name."""
  tree, is_package = _parse(module)
  source = _sources(tree).get(name, '') if is_package else ''
  if source.startswith(_FOLDERS) and source != module:
    return _origin(source, name)
  return module, name


@functools.cache
def _entry(entry: str) -> tuple[str, str]:
  module, _, name = entry.rpartition('.')
  return _origin(module, name)


def _is_shown(package: str, name: str) -> bool:
  """Whether `automodule` shows a name that a package exports."""
  tree, _ = _parse(package)
  source = _sources(tree).get(name, package)
  # Sphinx finds only what `dir` lists.
  is_lazy = any(
    isinstance(node, ast.If) and ast.unparse(node.test) == 'TYPE_CHECKING'
    for node in tree.body
  )
  lists_all = not is_lazy or 'lazy_imports.modules' in ast.unparse(tree)
  is_there = source in _MODULES or (package in _MODULES and lists_all)
  if not source.startswith(_FOLDERS):
    return is_there  # Acme's.
  return is_there and bool(_defined(_parse(source)[0]).get(name))


_PACKAGES = sorted(
  '.'.join(path.parent.relative_to(_ROOT).parts)
  for folder in _FOLDERS
  for path in (_ROOT / folder).rglob('__init__.py')
)


@pytest.mark.parametrize('package', _PACKAGES)
def test_what_a_package_exports_has_an_entry(package):
  tree, _ = _parse(package)
  entries = {_entry(entry) for entry in _NAMES}
  assert not [
    name
    for name in _exported(tree)
    if _origin(package, name) not in entries
    and not _is_shown(package, name)
    and f'{package}.{name}' not in _MODULES
  ]


def test_entries_are_of_what_there_is():
  assert len(set(_MODULES)) == len(_MODULES)
  for name in _NAMES:
    module, _, attribute = name.rpartition('.')
    tree, is_package = _parse(module)
    names = set(_exported(tree)) if is_package else set(_defined(tree))
    assert attribute in names | _assigned(tree), name


@pytest.mark.parametrize('folder', _INTERNAL)
def test_a_module_is_on_a_page_or_internal(folder):
  prefix = folder.replace('/', '.')
  found = {path.stem for path in (_ROOT / folder).glob('*.py')} - {'__init__'}
  shown = {
    name[len(prefix) + 1 :].partition('.')[0]
    for name in {*_MODULES, *_NAMES}
    if name.startswith(f'{prefix}.')
  }
  assert found - shown == _INTERNAL[folder]


def _documented_modules() -> set[str]:
  """Returns the modules that define the objects on a page."""
  found = set()
  for module in _MODULES:
    tree, is_package = _parse(module)
    found.add(module)
    if is_package:
      found |= {s for s in _sources(tree).values() if s.startswith(_FOLDERS)}
  return {m for m in found if not (_ROOT / m.replace('.', '/')).is_dir()}


def test_signatures_have_types():
  untyped = []
  for module in sorted(_documented_modules()):
    for owner in _parse(module)[0].body:
      if getattr(owner, 'name', '_').startswith('_'):
        continue
      untyped += [
        f'{module}: {node.name}({argument.arg})'
        for node in ast.walk(owner)
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)
        if node.name == '__init__' or not node.name.startswith('_')
        for argument in [*node.args.args, *node.args.kwonlyargs]
        if argument.annotation is None and argument.arg not in ('self', 'cls')
      ]
  assert not untyped
