"""Tests that the code follows the architecture's rules."""

import ast
import functools
import graphlib
import pathlib

import pytest

from support.system import architecture_rules as rules

ROOT = pathlib.Path(__file__).parent.parent
SOURCES = {
  path: (ROOT / path).read_text(encoding='utf-8')
  for path in rules.source_files(ROOT)
}


@functools.cache
def _trees():
  """Parses lazily, as most test processes run none of these tests."""
  return {path: ast.parse(source) for path, source in SOURCES.items()}


class TestCode:
  def check(self, violations):
    assert not violations, '\n' + '\n'.join(violations)

  def check_all(self, rule):
    self.check([v for path, tree in _trees().items() for v in rule(path, tree)])

  def test_all_is_looked_at(self):
    assert {'__init__.py', 'agents/dqn/learning.py'} <= set(SOURCES)
    assert not [path for path in SOURCES if 'tests/' in path]

  def test_direction(self):
    self.check_all(rules.check_direction)

  def test_ranks(self):
    self.check_all(rules.check_ranks)

  @pytest.mark.parametrize(
    ('folder', 'part', 'imported'),
    [
      ('components', 'policies', 'interfaces'),
      ('launch', 'topologies', 'launchers'),
    ],
  )
  def test_parts_import_each_other_in_no_circle(self, folder, part, imported):
    graph = {}
    for path, tree in _trees().items():
      if path.startswith(f'{folder}/'):
        name = path.split('/')[1].removesuffix('.py')
        graph.setdefault(name, set()).update(rules.imported_parts(path, tree))
    assert imported in graph[part]
    tuple(graphlib.TopologicalSorter(graph).static_order())  # Or CycleError.

  def test_imports_of_launch_are_not_deep(self):
    depths = rules.count_depths(_trees(), 'launch')
    assert max(depths.values()) <= 8, depths

  def test_fences(self):
    self.check_all(rules.check_fences)

  def test_names(self):
    self.check([v for path in SOURCES for v in rules.check_names(path)])

  def test_files_are_short(self):
    self.check(
      [
        violation
        for path, source in SOURCES.items()
        for violation in rules.check_file_length(path, source)
      ]
    )

  def test_functions_are_short(self):
    self.check_all(rules.check_function_lengths)


@pytest.mark.parametrize(
  ('rule', 'path', 'source'),
  [
    (
      rules.check_direction,
      'components/a.py',
      'def f():\n  from repertory import environments',
    ),
    (
      rules.check_direction,
      'agents/dqn/a.py',
      "importlib.import_module('repertory.agents.r2d2')",
    ),
    (
      rules.check_ranks,
      'launch/nodes/a.py',
      'from repertory.launch import launchers',
    ),
    (rules.check_ranks, 'components/novelty/a.py', ''),
    (rules.check_fences, 'launch/a.py', 'import gymnasium.spaces'),
    (rules.check_function_lengths, 'a.py', 'def f():\n' + '  y = 1\n' * 60),
  ],
)
def test_rules_find_violations(rule, path, source):
  assert len(rule(path, ast.parse(source))) == 1
