"""Tests of the code, commands and statements of README, docs and examples."""

import contextlib
import importlib
import io
import os
import pathlib
import pkgutil
import re
import shlex
import shutil
from unittest import mock

import pytest

from repertory import launch
from repertory.agents.interface import registry as agents_registry
from repertory.components import loggers
from repertory.components.actors import environment_loop
from repertory.launch import results
from repertory.launch.cli import commands as command_line
from repertory.launch.cli import dry_runs
from repertory.launch.cli import flags as flag_tables
from repertory.launch.coordination import kinds
from repertory.launch.experiments import directories
from repertory.launch.opening import run
from repertory.launch.platform import zygote
from repertory.launch.results import plots, report, runs
from repertory.launch.sweeps import sweep
from repertory.launch.topologies import topology
from repertory.launch.trained import evaluation, loading
from support.agents import trained_agents
from support.replay import recorded_episodes
from support.system import architecture_rules, program, rare_cases, stacks

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_README = 'README.md'
_GETTING_STARTED = 'docs/getting_started.md'
_INSTALLING = 'docs/installing.md'
_OWN_ENVIRONMENT = 'docs/my_environment.md'
_OWN_NETWORK = 'docs/my_network.md'
_PAGES = (
  _README,
  *sorted(str(p.relative_to(_ROOT)) for p in _ROOT.glob('docs/**/*.md')),
)
# Documents whose scripts run in every test run.
_DAILY_PAGES = (_README, 'docs/writing_an_agent.md')
# The others have their own tests.
_EXAMPLES = sorted(
  p.name
  for p in _ROOT.glob('examples/*.py')
  if not (_ROOT / 'tests' / 'examples' / f'{p.stem}_test.py').exists()
)

# A script takes seconds on free cores; the time-out allows for busy cores.
_DEADLINE_SECONDS = 400
_MAX_README_BYTES = 12_000


def _read(page: str) -> str:
  return (_ROOT / page).read_text(encoding='utf-8')


def _blocks(page: str, language: str) -> list[str]:
  return re.findall(
    rf'^```{language}\n(.*?)^```$', _read(page), re.MULTILINE | re.DOTALL
  )


def _commands(page: str) -> list[str]:
  """Returns the commands in shell blocks, and those with flags in the text."""
  lines = [
    line.strip()
    for block in _blocks(page, 'sh')
    for line in block.splitlines()
    if line.startswith('repertory ')
  ]
  prose = re.sub(r'^```.*?^```$', '', _read(page), flags=re.M | re.S)
  return lines + [
    command
    for command in re.findall(r'`(repertory [^`]+)`', prose)
    if '--' in command
  ]


def _call(arguments: list[str]) -> tuple[int, str, str]:
  """Returns exit code, output and errors of a `repertory` command."""
  out, err = io.StringIO(), io.StringIO()
  with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
    code = command_line.run(arguments)
  return code, out.getvalue(), err.getvalue()


def _words(text: str) -> str:
  return ' '.join(text.split())


def _joined(text: str) -> str:
  """Removes all whitespace: help breaks lines after hyphens, too."""
  return ''.join(text.split())


def _table(page: str, heading: str) -> list[list[str]]:
  """Returns the cells of the table below a heading, by row."""
  section = _read(page).split(f'{heading}\n', 1)[1]
  section = re.split(r'^#', section, maxsplit=1, flags=re.MULTILINE)[0]
  rows = [line for line in section.splitlines() if line.startswith('|')]
  return [[c.strip() for c in row.strip('|').split(' | ')] for row in rows[2:]]


class TestScripts:
  @pytest.mark.parametrize(
    'page',
    rare_cases.daily([p for p in _PAGES if _blocks(p, 'python')], _DAILY_PAGES),
  )
  def test_blocks_of_page_run_as_one_script(self, page, tmp_path):
    script = tmp_path / 'script.py'
    script.write_text('\n'.join(_blocks(page, 'python')))
    self._run(script, tmp_path)

  @pytest.mark.chaos
  @pytest.mark.parametrize('name', _EXAMPLES)
  def test_example_runs(self, name, tmp_path):
    self._run(_ROOT / 'examples' / name, tmp_path)

  def _run(self, script: pathlib.Path, folder: pathlib.Path) -> None:
    ended = program.Program([str(script)], str(folder)).wait(_DEADLINE_SECONDS)
    assert ended.code == 0, ended.output
    assert ended.left == []


class TestReadme:
  def test_is_short(self):
    assert (_ROOT / _README).stat().st_size <= _MAX_README_BYTES

  def test_topologies_are_those_of_the_registry(self):
    rows = _table(_README, '## Topologies')
    shown = [name.strip('`') for name, _ in rows]
    assert shown == list(topology.topologies())

  def test_agents_are_those_of_the_registry(self):
    rows = _table(_README, '## Agents')
    shown = [name for row in rows for name in re.findall(r'/(\w+)\.md', row[0])]
    names = [agent.name for agent in agents_registry.agents()]
    assert sorted(shown) == sorted(names)

  @pytest.mark.parametrize('page', [_README, _GETTING_STARTED, _INSTALLING])
  def test_make_targets_exist(self, page):
    makefile = _read('Makefile')
    targets = re.findall(r'(?:^|`)make ([a-z-]+)', _read(page), re.MULTILINE)
    assert targets
    for target in targets:
      assert re.search(rf'(?m)^{target}:', makefile)


class TestFlags:
  def test_page_has_each_group_of_the_help(self):
    headings = re.findall(r'(?m)^## (.*)$', _read('docs/flags.md'))
    tables = re.findall(r'(?m)^```\{flags\} (.*)$', _read('docs/flags.md'))
    assert headings == tables == list(flag_tables.TRAIN_GROUPS)

  def test_tables_are_what_help_says(self, tables):
    _, text, _ = _call(['train', '--help'])
    flags = dict(
      re.findall(
        r'^  --(?:\[no\])?(\w+):(.*?)(?=^  --|^\S|\Z)',
        text.split('absl.flags:')[0],
        re.MULTILINE | re.DOTALL,
      )
    )
    rows = [
      row
      for group in flag_tables.TRAIN_GROUPS
      for row in tables.flag_rows(group)
    ]
    assert sorted(name for name, *_ in rows) == sorted(flags)
    for name, default, meaning in rows:
      shown = _joined(flags[name])
      stated = re.search(r"\(default:'(.*)'\)", shown)
      if stated:
        assert default == f'`{stated[1]}`', name
      else:  # Without a fixed value, the text describes the default.
        text = f';default:{_joined(default)}'
        assert text in shown, name
        shown = shown.replace(text, '')
      assert shown.startswith(_joined(meaning)), name


@pytest.fixture(name='tables')
def _tables(monkeypatch):
  monkeypatch.syspath_prepend(_ROOT / 'docs')
  return importlib.import_module('tables')


@pytest.fixture(scope='module', name='folder_with_data')
def _folder_with_data(tmp_path_factory):
  """A folder with the data set of the pages' commands."""
  folder = tmp_path_factory.mktemp('data')
  recorded_episodes.play_randomly(folder / 'runs' / 'data', 'catch', 100)
  return folder


@pytest.fixture(scope='module', name='trained')
def _trained(tmp_path_factory):
  directory = str(tmp_path_factory.mktemp('run'))
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=1, directory=directory
  )
  trained_agents.write_checkpoint(experiment)
  return loading.read(directory)


class TestCommands:
  @pytest.fixture(autouse=True)
  def _set_up(self, monkeypatch, write_module, tmp_path, trained):
    for package in (launch, results):  # They keep what is found first.
      for name in package.__all__:
        getattr(package, name)
    # Other tests run the commands; this one checks their names only.
    write_module('my_module', '\n'.join(_blocks(_OWN_ENVIRONMENT, 'python')))
    write_module('my_networks', '\n'.join(_blocks(_OWN_NETWORK, 'python')))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'examples').symlink_to(_ROOT / 'examples')
    (tmp_path / 'runs').mkdir()  # The default of `repertory runs`.
    result = run.Result(loggers.Status('title'), 'directory')
    episodes = [environment_loop.Episode(0, 1.0, 9)]
    found = runs.Found([runs.RunRecord('directory', 'done')], [])
    for module, name, value in (
      (run, 'run', result),
      (evaluation, 'evaluate', episodes),
      (evaluation, 'record', [1.0]),
      (directories, 'check_trained', None),
      (loading, 'read', trained),
      (launch.TrainedPolicy, 'export_saved_model', None),
      (results, 'find', found),
      (plots, 'plot', []),
      (report, 'write', None),
      (sweep.Pool, 'run', None),
      (zygote, 'prepare', None),
      (dry_runs, 'find_refused', None),
    ):
      monkeypatch.setattr(module, name, mock.Mock(return_value=value))

  @pytest.mark.parametrize(
    ('page', 'command'), [(page, c) for page in _PAGES for c in _commands(page)]
  )
  def test_is_understood(self, page, command, folder_with_data, monkeypatch):
    del page  # For the message.
    monkeypatch.chdir(folder_with_data)
    shutil.rmtree('sweeps', ignore_errors=True)  # Several use one directory.
    code, _, complaint = _call(shlex.split(command)[1:])
    assert code == 0, complaint


class TestDocs:
  def test_links_lead_somewhere(self):
    for page in _PAGES:
      links = r'(?:\]\(|src=")([^)#:\s"]+)(?:#[^)]*)?[)"]'
      for link in re.findall(links, _read(page)):
        assert (_ROOT / page).parent.joinpath(link).exists()

  def test_paths_of_files_lead_somewhere(self):
    folders = r'(?:agents|components|environments|launch|tests|examples|\.ci)'
    for page in (*_PAGES, 'CHANGELOG.md'):
      for path in re.findall(rf'`({folders}/[\w/.]*)`', _read(page)):
        assert (_ROOT / path).exists()

  def test_names_of_migration_page_exist(self):
    stacks.require_reverb()  # Some are of modules that import it.
    names = re.findall(
      r'(?<![\w.])((?:agents|components|environments|launch)(?:\.\w+)+)',
      _read('docs/migration.md'),
    )
    assert len(names) > 50
    for name in names:
      assert pkgutil.resolve_name(f'repertory.{name}') is not None

  def test_rooms_of_launch_are_those_of_the_rules(self):
    rows = _table('docs/architecture.md', '## Layers')
    shown = [(int(rank), rooms.strip('`')) for rank, rooms, *_ in rows]
    ranks = enumerate(architecture_rules._RANKS_OF_LAUNCH, 1)
    assert shown == [(rank, room) for rank, rooms in ranks for room in rooms]
    for _, room, _, modules in rows:
      for module in re.findall(r'`(\w+)`', modules):
        path = _ROOT / 'launch' / room.strip('`') / f'{module}.py'
        assert path.exists(), path

  def test_kinds_of_nodes_are_those_of_the_code(self):
    assert _table('docs/architecture.md', '## Adding a kind of node') == [
      [
        f'`{kind.name}`',
        f'`{kind.phase}`' if kind.phase else '–',
        *(
          'yes' if does else 'no'
          for does in (
            kind.serves,
            kind.is_replaceable,
            kind.saves,
            kind.acts,
            kind.has_environments,
          )
        ),
      ]
      for kind in kinds.KINDS
    ]

  def test_graphs_are_as_printed(self, folder_with_data, monkeypatch):
    monkeypatch.chdir(folder_with_data)
    printouts = re.findall(
      r'The printout of `repertory (graph [^`]*)`.*?^```mermaid\n(.*?)^```$',
      _read('docs/topologies.md'),
      re.MULTILINE | re.DOTALL,
    )
    shown = [
      re.search(r'--topology=(\w+)', command)[1] for command, _ in printouts
    ]
    assert shown == list(topology.topologies())
    for command, expected in printouts:
      code, printed, _ = _call(command.split())
      assert code == 0, command
      assert printed == expected, command

  def test_refusal_is_as_printed(self, tmp_path):
    (block,) = [
      block
      for block in _blocks('docs/data_flow.md', 'text')
      if block.startswith('$ repertory ')
    ]
    command, expected = block.split('\n', 1)
    directory = os.path.join(tmp_path, 'run')
    arguments = [*command.split()[2:], f'--directory={directory}']
    code, _, complaint = _call(arguments)
    assert code == 2
    assert _words(complaint) == _words(expected)
    assert not os.path.exists(directory)

  @pytest.mark.parametrize('name', [a.name for a in agents_registry.agents()])
  def test_agents_have_one_order(self, name, tables):
    page = _read(f'docs/agents/{name}.md')
    titles = re.findall('(?m)^## (.*)', page)
    order = ['Support', 'Example', 'Results', 'Speed', 'Stability', 'Settings']
    first = titles[: titles.index('Settings') + 1]
    assert first == [title for title in order if title in titles]
    assert {'Support', 'Example', 'Equations', 'Sources'} <= {*titles}
    assert f'```{{settings}} {name}\n' in page
    assert len(tables.settings(name)) > 2

  def test_reward_models_have_tables(self, tables):
    page = _read('docs/agents/reward_models.md')
    for name in ('rnd', 'sqil', 'gail'):
      assert f'```{{settings}} {name}\n' in page
      assert len(tables.settings(name)) > 2
