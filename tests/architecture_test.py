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


class TestDirection:
  """Tests of the checkers on made-up code."""

  def found(self, path, source):
    return rules.check_direction(path, ast.parse(source))

  @pytest.mark.parametrize(
    ('path', 'target'),
    [
      ('components/core.py', 'repertory.components.types'),
      ('components/adders/a.py', 'repertory.components.replay.tables'),
      ('components/a.py', 'numpy'),
      ('environments/a.py', 'repertory.environments.wrappers.b'),
      ('environments/wrappers/a.py', 'repertory.environments.values.casting'),
      (
        'environments/tensor/a.py',
        'repertory.components.runtime.random_streams',
      ),
      ('environments/a.py', 'repertory.components.config.import_paths'),
      (
        'components/config/import_paths.py',
        'repertory.components.config.settings',
      ),
      ('agents/interface/builder.py', 'repertory.components.core'),
      (
        'agents/replay/transition_replay.py',
        'repertory.agents.interface.builder',
      ),
      ('agents/interface/registry.py', 'repertory.agents.dqn'),
      ('agents/interface/registry.py', 'repertory.agents.r2d2.config'),
      ('agents/dqn/learning.py', 'repertory.agents.interface.builder'),
      ('agents/dqn/learning.py', 'repertory.agents.dqn.config'),
      ('agents/dqn/learning.py', 'repertory.components.losses'),
      ('launch/nodes/a.py', 'repertory.agents.interface.registry'),
      ('launch/nodes/a.py', 'repertory.components'),
      ('launch/nodes/a.py', 'repertory.environments.batches.batch'),
      ('launch/topologies/a.py', 'repertory.launch.nodes.learner'),
    ],
  )
  def test_allowed(self, path, target):
    assert not self.found(path, f'import {target}')
    package, _, name = target.rpartition('.')
    if package:
      assert not self.found(path, f'from {package} import {name}')

  @pytest.mark.parametrize(
    ('path', 'target'),
    [
      ('components/core.py', 'repertory.environments'),
      ('components/core.py', 'repertory.agents.dqn'),
      ('components/actors/a.py', 'repertory.launch.nodes.learner'),
      ('components/runtime/random_streams.py', 'repertory.components.types'),
      (
        'components/runtime/random_streams.py',
        'repertory.environments.values.casting',
      ),
      (
        'components/config/settings.py',
        'repertory.environments.registry.close_names',
      ),
      ('environments/batches/batch.py', 'repertory.components.types'),
      ('environments/batches/batch.py', 'repertory.components.random'),
      ('agents/dqn/learning.py', 'repertory.environments.tensor'),
      ('environments/wrappers/a.py', 'repertory.components'),
      ('environments/a.py', 'repertory.agents'),
      ('environments/a.py', 'repertory.launch'),
      ('agents/interface/builder.py', 'repertory.environments'),
      ('agents/interface/builder.py', 'repertory.launch.nodes.learner'),
      ('agents/interface/builder.py', 'repertory.agents.dqn'),
      ('agents/replay/transition_replay.py', 'repertory.agents.sac'),
      (
        'agents/replay/transition_replay.py',
        'repertory.agents.interface.registry',
      ),
      ('agents/interface/registry.py', 'repertory.launch'),
      (
        'agents/interface/registry.py',
        'repertory.environments.registry.registry',
      ),
      ('agents/dqn/learning.py', 'repertory.agents.r2d2'),
      ('agents/dqn/learning.py', 'repertory.agents.interface.registry'),
      ('agents/dqn/learning.py', 'repertory.environments.games.catch'),
      ('agents/dqn/learning.py', 'repertory.launch'),
    ],
  )
  def test_forbidden(self, path, target):
    package, _, name = target.rpartition('.')
    for source in (
      f'import {target}',
      f'import {target} as other',
      f'from {package} import {name}',
      f'from {package} import {name} as other',
      f'from {target} import anything',
      f'def f():\n  import {target}',
      f'if TYPE_CHECKING:\n  from {target} import anything',
      f"importlib.import_module('{target}')",
      f"__import__('{target}')",
    ):
      assert len(self.found(path, source)) == 1, source

  @pytest.mark.parametrize('path', ['components/a.py', 'agents/dqn/a.py'])
  def test_whole_package_is_forbidden(self, path):
    assert len(self.found(path, 'import repertory')) == 1

  def test_relative_imports_are_followed(self):
    assert len(self.found('agents/dqn/a.py', 'from ..r2d2 import b')) == 1
    assert len(self.found('agents/dqn/a.py', 'from .. import r2d2')) == 1
    assert len(self.found('components/a.py', 'from ..launch import b')) == 1
    assert not self.found('agents/dqn/a.py', 'from . import b')

  def test_says_where(self):
    assert self.found(
      'components/a.py', '\n\nfrom repertory.launch import b'
    ) == ['components/a.py:3: imports repertory.launch.b']


class TestRanks:
  def found(self, path, source):
    return rules.check_ranks(path, ast.parse(source))

  @pytest.mark.parametrize(
    ('path', 'target'),
    [
      ('components/specs.py', 'types'),
      ('components/core.py', 'types'),
      ('components/policies/a.py', 'core'),
      ('components/adders/a.py', 'replay.tables'),
      ('components/adders/a.py', 'adders.b'),
      ('components/learners/a.py', 'loggers'),
      ('components/actors/a.py', 'variables.client'),
      ('components/transports/experience.py', 'adders.adder'),
      ('launch/opening/a.py', 'platform.b'),
      ('launch/nodes/a.py', 'coordination.b'),
      ('launch/topologies/a.py', 'topologies.b'),
      ('launch/running/run.py', 'topologies.b'),
    ],
  )
  def test_allowed(self, path, target):
    folder = path.split('/')[0]
    assert not self.found(path, f'import repertory.{folder}.{target}')

  @pytest.mark.parametrize(
    ('path', 'target'),
    [
      ('components/types.py', 'core'),
      ('components/specs.py', 'core'),
      ('components/runtime/signals.py', 'loggers'),
      ('components/core.py', 'losses'),
      ('components/core.py', 'learners'),
      ('components/policies/a.py', 'actors'),
      ('components/adders/a.py', 'offline'),
      ('components/replay/a.py', 'learners'),
      ('components/variables/a.py', 'actors.policy_actor'),
      ('components/learners/a.py', 'gossip'),
      ('components/transports/experience.py', 'testing'),
      ('launch/platform/a.py', 'opening'),
      ('launch/coordination/a.py', 'nodes.b'),
      ('launch/nodes/a.py', 'launchers.node_graph'),
      ('launch/launchers/a.py', 'topologies.b'),
      ('launch/topologies/a.py', 'running'),
      ('launch/running/run.py', 'cli'),
    ],
  )
  def test_forbidden(self, path, target):
    folder = path.split('/')[0]
    for source in (
      f'import repertory.{folder}.{target}',
      f'from repertory.{folder} import specs, {target.split(".")[0]}',
      f'from repertory.{folder}.{target} import anything',
    ):
      assert len(self.found(path, source)) == 1, source

  def test_every_part_needs_a_rank(self):
    assert self.found('components/novelty/a.py', '') == [
      'components/novelty/a.py:1: has no rank in components'
    ]
    assert len(self.found('components/novelty.py', '')) == 1
    assert len(self.found('launch/novelty/a.py', '')) == 1
    assert not self.found('components/__init__.py', '')
    assert not self.found('agents/novelty.py', '')

  def test_imported_parts(self):
    tree = ast.parse(
      'from repertory.components import core, replay\n'
      'from repertory.components.adders import b\n'
      'from repertory.components.replay import tables\n'
      'import numpy\n'
    )
    assert rules.imported_parts('components/adders/a.py', tree) == {
      'core',
      'replay',
    }
    assert rules.imported_parts('agents/a.py', tree) == set()

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
    assert rules.find_cycle({}) is None
    assert rules.find_cycle({'a': {'b', 'c'}, 'b': {'c'}}) is None
    expected = ['b', 'c', 'b']
    assert rules.find_cycle({'a': {'b'}, 'b': {'c'}, 'c': {'b'}}) == expected
    assert rules.find_cycle({'a': {'a'}}) == ['a', 'a']


class TestFences:
  def found(self, path, source):
    return rules.check_fences(path, ast.parse(source))

  @pytest.mark.parametrize(
    ('path', 'target'),
    [
      ('launch/launchers/launchpad.py', 'launchpad'),
      ('launch/launchers/courier_servers.py', 'courier'),
      ('launch/launchers/grpc_servers.py', 'grpc'),
      ('components/core.py', 'acme'),
      ('components/specs.py', 'acme.specs'),
      ('components/types.py', 'acme'),
      ('components/loggers/counting.py', 'acme.utils.counting'),
      ('components/loggers/a.py', 'acme.utils.loggers'),
      ('components/replay/reverb/client.py', 'reverb'),
      ('components/replay/reverb/writer.py', 'reverb.errors'),
      ('environments/a.py', 'gymnasium'),
      ('environments/wrappers/a.py', 'gymnasium.spaces'),
      ('environments/a.py', 'dm_control.suite'),
      ('components/core.py', 'acme_like'),
      ('components/core.py', 'repertory.reverb'),
      ('benchmarks/against_acme.py', 'acme'),
    ],
  )
  def test_allowed(self, path, target):
    assert not self.found(path, f'import {target}')

  @pytest.mark.parametrize(
    ('path', 'target'),
    [
      ('components/core.py', 'launchpad'),
      ('launch/nodes/a.py', 'launchpad'),
      ('launch/launchers/a.py', 'courier'),
      ('launch/launchers/courier_servers.py', 'grpc'),
      ('launch/nodes/a.py', 'reverb'),
      ('agents/dqn/learning.py', 'launchpad'),
      ('environments/a.py', 'launchpad.nodes'),
      ('components/variables/client.py', 'courier'),
      ('components/actors/environment_loop.py', 'acme'),
      ('components/actors/core.py', 'acme.core'),
      ('components/adders/a.py', 'acme.adders'),
      ('agents/dqn/learning.py', 'acme'),
      ('agents/interface/builder.py', 'acme.specs'),
      ('launch/a.py', 'acme'),
      ('environments/a.py', 'acme.specs'),
      ('components/adders/a.py', 'reverb'),
      ('components/replay/tables.py', 'reverb'),
      ('components/transports/reverb_transport.py', 'reverb'),
      ('components/transports/experience.py', 'reverb'),
      ('components/learners/a.py', 'reverb'),
      ('components/core.py', 'reverb'),
      ('agents/interface/builder.py', 'reverb'),
      ('agents/dqn/learning.py', 'reverb'),
      ('environments/a.py', 'reverb'),
      ('components/a.py', 'gymnasium'),
      ('launch/a.py', 'gymnasium'),
      ('agents/dqn/a.py', 'gym'),
      ('launch/a.py', 'ale_py'),
    ],
  )
  def test_forbidden(self, path, target):
    for source in (
      f'import {target}',
      f'import numpy, {target}',
      f'from {target} import anything',
      f'def f():\n  from {target} import anything as other',
    ):
      assert len(self.found(path, source)) == 1, source


class TestAbsoluteImports:
  @pytest.mark.parametrize(
    'source',
    [
      'from . import a',
      'from .a import b',
      'from ..a import b',
      'def f():\n  from . import a',
      'import components.core',
      'from agents.dqn import config',
      'from environments import catch',
      'import launch',
    ],
  )
  def test_forbidden(self, source):
    assert (
      len(rules.check_absolute_imports('components/x/a.py', ast.parse(source)))
      == 1
    )

  @pytest.mark.parametrize(
    'source',
    [
      'from repertory.components import core',
      'import repertory.launch.nodes',
      'import launchpad',
      'from acme import agents',
    ],
  )
  def test_allowed(self, source):
    assert not rules.check_absolute_imports(
      'components/x/a.py', ast.parse(source)
    )


class TestNames:
  @pytest.mark.parametrize(
    'path',
    [
      'components/utils.py',
      'components/util/a.py',
      'launch/helpers.py',
      'agents/dqn/helper.py',
      'components/common/a.py',
      'environments/misc.py',
      'agents/base.py',
      'components/tf_utils.py',
      'components/base/__init__.py',
    ],
  )
  def test_forbidden(self, path):
    assert len(rules.check_names(path)) == 1

  @pytest.mark.parametrize(
    'path',
    [
      'components/core.py',
      'components/database.py',
      'components/losses/__init__.py',
      'environments/wrappers/environment_wrapper.py',
      'launch/utilization.py',
    ],
  )
  def test_allowed(self, path):
    assert not rules.check_names(path)


class TestLengths:
  @pytest.mark.parametrize(
    ('num_lines', 'num_violations'), [(600, 0), (601, 1), (1000, 1), (0, 0)]
  )
  def test_files(self, num_lines, num_violations):
    found = rules.check_file_length('a.py', 'x = 1\n' * num_lines)
    assert len(found) == num_violations

  @pytest.mark.parametrize('lines', [(1, 0), (59, 0), (60, 1), (200, 1)])
  @pytest.mark.parametrize(
    'header', ['def f():', 'async def f():', '@decorator\ndef f():']
  )
  def test_functions(self, lines, header):
    num_lines, num_violations = lines  # Excluding the line of `def`.
    source = header + '\n' + '  x = 1\n' * num_lines
    for text in (
      source,
      'class A:\n' + '\n'.join('  ' + line for line in source.splitlines()),
    ):
      found = rules.check_function_lengths('a.py', ast.parse(text))
      assert len(found) == num_violations

  def test_says_which(self):
    source = 'x = 1\n\ndef f():\n' + '  y = 1\n' * 60
    assert rules.check_function_lengths('launch/a.py', ast.parse(source)) == [
      'launch/a.py:3: f has 61 lines, the limit is 60'
    ]


class TestDocstrings:
  @pytest.mark.parametrize(
    'line', ['Of the module.', 'name: Of the module.', '*a, b: Of both.']
  )
  def test_forbidden(self, line):
    source = f'class A:\n  def f():\n    """Does.\n\n    {line}\n    """'
    assert rules.check_docstrings('a.py', ast.parse(source)) == [
      f'a.py:5: {line!r} is no phrase'
    ]

  @pytest.mark.parametrize(
    'source',
    ['"""Offers: what is Of use."""', "x = 'Of x'", 'def f():\n  # Of x\n  1'],
  )
  def test_allowed(self, source):
    assert not rules.check_docstrings('a.py', ast.parse(source))


class TestSourceFiles:
  def test_what_counts(self, tmp_path):
    root = tmp_path
    for path in (
      '__init__.py',
      'components/a.py',
      'components/deep/er/b.py',
      'components/runs/b.py',
      'benchmarks/c.py',
      'components/readme.md',
      'tests/d_test.py',
      '.venv/e.py',
      'build/f.py',
      'runs/g.py',
    ):
      (root / path).parent.mkdir(parents=True, exist_ok=True)
      (root / path).touch()
    assert rules.source_files(root) == [
      '__init__.py',
      'benchmarks/c.py',
      'components/a.py',
      'components/deep/er/b.py',
      'components/runs/b.py',
    ]
