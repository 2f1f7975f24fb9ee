"""Tests that code and docs use the field's terms."""

import ast
import collections
import functools
import pathlib
import re

from support.system import architecture_rules

_ROOT = pathlib.Path(__file__).parent.parent
_FIRST_WORD = re.compile(r'(What|Who|Whom|Whose|How|Where|Which|Whatever)\b')
_RIDDLES = re.compile(
  r'(?<!\.)\b(tells?|told|telling|whoever|those who|who acts?|was lived|so many'
  r'|so long|as ever|nearer|makes of|goes on|there is none|of whom'
  r'|in its turn)\b',
  re.IGNORECASE,
)


@functools.cache
def _sources():
  """Returns (path, text, tree) of all Python files but this one, by path."""
  paths = [*_ROOT.glob('tests/**/*.py')]
  paths += map(_ROOT.joinpath, architecture_rules.source_files(_ROOT))
  return [
    (
      path.relative_to(_ROOT).as_posix(),
      text := path.read_text(),
      ast.parse(text),
    )
    for path in sorted(paths)
    if path != pathlib.Path(__file__)
  ]


def _documents():
  paths = [_ROOT / 'README.md', *_ROOT.glob('docs/**/*.md')]
  return [
    (path.relative_to(_ROOT).as_posix(), path.read_text()) for path in paths
  ]


def test_docstrings_begin_with_what_they_describe():
  wrong = []
  for path, _, tree in _sources():
    for node in ast.walk(tree):
      if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        docstring = ast.get_docstring(node) or ''
        if _FIRST_WORD.match(docstring):
          wrong.append(f'{path}: {docstring.splitlines()[0]}')
  assert wrong == []


def test_no_riddles():
  assert [
    f'{path}:{number}: {line.strip()}'
    for path, text, *_ in _sources() + _documents()
    for number, line in enumerate(text.splitlines(), 1)
    if _RIDDLES.search(line)
  ] == []


def test_public_classes_have_names_of_their_own():
  paths = collections.defaultdict(list)
  for path, _, tree in _sources():
    if not path.startswith(('tests/', 'benchmarks/', 'examples/')):
      for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith('_'):
          paths[node.name].append(path)
  assert {n: where for n, where in paths.items() if len(where) > 1} == {}
