"""Tests that the code follows the architecture's rules."""

import ast
import functools
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
    assert {
      '__init__.py',
      'agents/dqn/learning.py',
      'components/core.py',
      'components/loggers/csv_file.py',
      'environments/wrappers/step_limit.py',
      'launch/topologies/single.py',
    } <= set(SOURCES)
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
    assert rules.find_cycle(graph) is None

  def test_imports_of_launch_are_not_deep(self):
    depths = rules.count_depths(_trees(), 'launch')
    assert max(depths.values()) <= 8, depths

  def test_fences(self):
    self.check_all(rules.check_fences)

  def test_imports_are_absolute(self):
    self.check_all(rules.check_absolute_imports)

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

  def test_docstrings_are_phrases(self):
    self.check_all(rules.check_docstrings)


_FORMS = (
  'import {target}',
  'import {target} as other',
  'from {package} import {name}',
  'from {target} import anything',
  'def f():\n  import {target}',
  'if TYPE_CHECKING:\n  from {target} import anything',
  "importlib.import_module('{target}')",
)


class TestRules:
  """Tests of the checkers on made-up code."""

  @pytest.mark.parametrize(
    ('rule', 'path', 'target'),
    [
      (rules.check_direction, 'components/a.py', 'numpy'),
      (rules.check_direction, 'components/a.py', 'repertory.components.replay'),
      (
        rules.check_direction,
        'environments/a.py',
        'repertory.components.config.import_paths',
      ),
      (rules.check_direction, 'agents/dqn/a.py', 'repertory.components.losses'),
      (
        rules.check_direction,
        'agents/dqn/a.py',
        'repertory.agents.interface.builder',
      ),
      (
        rules.check_direction,
        'agents/interface/registry.py',
        'repertory.agents.dqn',
      ),
      (rules.check_direction, 'launch/nodes/a.py', 'repertory.agents.dqn'),
      (rules.check_ranks, 'components/core.py', 'repertory.components.types'),
      (rules.check_ranks, 'launch/nodes/a.py', 'repertory.launch.coordination'),
      (rules.check_ranks, 'launch/running/a.py', 'repertory.launch.running.b'),
      (rules.check_fences, 'launch/launchers/launchpad.py', 'launchpad'),
      (rules.check_fences, 'components/loggers/a.py', 'acme.utils.loggers'),
      (rules.check_fences, 'components/core.py', 'acme_like'),
      (rules.check_fences, 'benchmarks/against_acme.py', 'acme'),
      (rules.check_absolute_imports, 'components/a.py', 'launchpad'),
      (rules.check_absolute_imports, 'components/a.py', 'repertory.launch'),
    ],
  )
  def test_allowed_imports(self, rule, path, target):
    assert not rule(path, ast.parse(f'import {target}'))

  @pytest.mark.parametrize(
    ('rule', 'path', 'target'),
    [
      (rules.check_direction, 'components/a.py', 'repertory.environments.b'),
      (rules.check_direction, 'components/a.py', 'repertory.launch.nodes'),
      (
        rules.check_direction,
        'components/config/settings.py',
        'repertory.environments.registry.families',
      ),
      (
        rules.check_direction,
        'environments/a.py',
        'repertory.components.types',
      ),
      (rules.check_direction, 'agents/dqn/a.py', 'repertory.agents.r2d2'),
      (
        rules.check_direction,
        'agents/dqn/a.py',
        'repertory.environments.games',
      ),
      (
        rules.check_direction,
        'agents/interface/builder.py',
        'repertory.agents.dqn',
      ),
      (
        rules.check_direction,
        'agents/dqn/a.py',
        'repertory.agents.interface.registry',
      ),
      (rules.check_ranks, 'components/types.py', 'repertory.components.core'),
      (rules.check_ranks, 'launch/nodes/a.py', 'repertory.launch.launchers.b'),
      (rules.check_ranks, 'launch/running/a.py', 'repertory.launch.cli'),
      (rules.check_fences, 'launch/launchers/a.py', 'courier.python'),
      (rules.check_fences, 'components/actors/core.py', 'acme.core'),
      (rules.check_fences, 'components/replay/tables.py', 'reverb.errors'),
      (rules.check_fences, 'launch/a.py', 'gymnasium.spaces'),
      (rules.check_absolute_imports, 'components/x/a.py', 'components.core'),
    ],
  )
  def test_forbidden_imports(self, rule, path, target):
    package, _, name = target.rpartition('.')
    for form in _FORMS:
      source = form.format(target=target, package=package, name=name)
      assert len(rule(path, ast.parse(source))) == 1, source

  def test_relative_imports_are_followed_and_forbidden(self):
    source = ast.parse('\n\nfrom ..launch import b')
    assert rules.check_direction('components/a.py', source) == [
      'components/a.py:3: imports repertory.launch.b'
    ]
    assert len(rules.check_absolute_imports('components/a.py', source)) == 1

  def test_every_part_needs_a_rank(self):
    tree = ast.parse('')
    assert rules.check_ranks('components/novelty/a.py', tree) == [
      'components/novelty/a.py:1: has no rank in components'
    ]
    assert not rules.check_ranks('components/__init__.py', tree)
    assert not rules.check_ranks('agents/novelty.py', tree)

  def test_imported_parts(self):
    tree = ast.parse(
      'from repertory.components import core, replay\n'
      'from repertory.components.adders import b\n'
      'import numpy\n'
    )
    parts = rules.imported_parts('components/adders/a.py', tree)
    assert parts == {'core', 'replay'}

  def test_depths(self):
    trees = {
      'launch/a.py': ast.parse('import numpy'),
      'launch/room/b.py': ast.parse('from repertory.launch import a'),
      'launch/room/c.py': ast.parse('from repertory.launch.room.b import d'),
      'components/d.py': ast.parse('from repertory.launch.room import c'),
    }
    assert rules.count_depths(trees, 'launch') == {
      'launch.a': 1,
      'launch.room.b': 2,
      'launch.room.c': 3,
    }

  def test_cycles(self):
    assert rules.find_cycle({'a': {'b', 'c'}, 'b': {'c'}}) is None
    expected = ['b', 'c', 'b']
    assert rules.find_cycle({'a': {'b'}, 'b': {'c'}, 'c': {'b'}}) == expected

  @pytest.mark.parametrize(
    ('path', 'number'),
    [
      ('components/tf_utils.py', 1),
      ('components/util/a.py', 1),
      ('agents/base.py', 1),
      ('components/database.py', 0),
      ('launch/utilization.py', 0),
    ],
  )
  def test_names(self, path, number):
    assert len(rules.check_names(path)) == number

  def test_lengths(self):
    assert not rules.check_file_length('a.py', 'x = 1\n' * 600)
    assert len(rules.check_file_length('a.py', 'x = 1\n' * 601)) == 1
    source = 'x = 1\n\n@decorator\ndef f():\n' + '  y = 1\n' * 59
    assert not rules.check_function_lengths('a.py', ast.parse(source))
    source += '  y = 1\n'
    assert rules.check_function_lengths('a.py', ast.parse(source)) == [
      'a.py:4: f has 61 lines, the limit is 60'
    ]

  def test_docstrings(self):
    source = (
      '"""Offers: what is Of use."""\ndef f():\n  """Does.\n\n  a: Of it."""'
    )
    assert rules.check_docstrings('a.py', ast.parse(source)) == [
      "a.py:5: 'a: Of it.' is no phrase"
    ]

  def test_source_files(self, tmp_path):
    for path in (
      'components/runs/b.py',
      'components/readme.md',
      'tests/d_test.py',
      '.venv/e.py',
      'runs/g.py',
    ):
      (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
      (tmp_path / path).touch()
    assert rules.source_files(tmp_path) == ['components/runs/b.py']
