"""Tests of the page that follows DQN through the code."""

import ast
import pathlib
import re
import sys

from repertory import launch
from repertory.launch.nodes import one_thread

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_STOP = re.compile(r'\| \[([\w/]+\.py)\]\(\.\./([\w/]+\.py)\) \| `([\w.]+)` \|')

# Not on the path of experience and variables: logs, and first imports.
_BESIDE = (
  'components/loggers/',
  'launch/coordination/',
  'components/config/lazy_imports.py',
)


def _stops():
  """Returns (path, function) in the order of the page."""
  page = (_ROOT / 'docs' / 'dqn_top_to_bottom.md').read_text('utf-8')
  found = _STOP.findall(page)
  assert len(found) == page.count('\n| [')
  assert [path for path, _, _ in found] == [link for _, link, _ in found]
  return [(path, name) for path, _, name in found]


def _definition(path, name):
  """Returns (path, line) of a function; of a class, that of its constructor."""
  node = ast.parse((_ROOT / path).read_text('utf-8'))
  parts = name.split('.')
  while parts or isinstance(node, ast.ClassDef):
    part = parts.pop(0) if parts else '__init__'
    (node,) = [
      child
      for child in node.body
      if isinstance(child, ast.ClassDef | ast.FunctionDef)
      and child.name == part
    ]
  return path, min(one.lineno for one in (node, *node.decorator_list))


def _trace(monkeypatch, directory):
  """Runs DQN; returns the (path, line) of functions entered, by turn.

  Those of a turn are in the order of first entries. Turns are those with
  learner steps, after the first of the run, that end no episode.
  """
  turns = []
  entered = {}

  def note(frame, event, argument):
    del argument
    if event == 'call':
      code = frame.f_code
      entered.setdefault((code.co_filename, code.co_firstlineno))

  class Traced(one_thread.OneThread):
    """Traces the turns of the loop, up to evaluations and reports."""

    def counts(self):
      (actor,) = [node for node in self._nodes if node.name == 'actor/0']
      return self._learner.version, actor.total_episodes

    def has_steps_left(self):
      result = super().has_steps_left()
      self.before = self.counts()
      entered.clear()
      note(sys._getframe(1), 'call', None)  # The run function.
      sys.setprofile(note)
      return result

    def evaluate_if_due(self):
      sys.setprofile(None)
      (steps, episodes), now = self.before, self.counts()
      if steps and now[0] > steps and now[1] == episodes:
        turns.append([(_path_of(file), line) for file, line in entered])
      super().evaluate_if_due()

  monkeypatch.setattr(one_thread, 'OneThread', Traced)
  experiment = launch.make_experiment(
    'dqn',
    'catch',
    directory=str(directory / 'run'),
    evaluation_episodes=0,
    # So that the code of policy and update runs in each step.
    eager=True,
    max_steps=48,
    config={'min_replay_size': 32},
  )
  launch.run(experiment)
  sys.setprofile(None)
  assert turns
  return turns


def _path_of(file):
  """Returns the path of a file of the package; '' of others."""
  path = pathlib.Path(file).resolve()
  if not path.is_relative_to(_ROOT):
    return ''
  path = path.relative_to(_ROOT)
  is_ours = path.parts[0] in ('agents', 'components', 'environments', 'launch')
  return path.as_posix() if is_ours else ''


def _paths(turns):
  paths = {path for turn in turns for path, _ in turn}
  return {path for path in paths if path and not path.startswith(_BESIDE)}


def test_stops_are_all_files_in_the_order_of_calls(monkeypatch, tmp_path):
  turns = _trace(monkeypatch, tmp_path)
  stops = _stops()
  assert len(set(stops)) == len(stops)
  assert _paths(turns) == {path for path, _ in stops}
  order = turns[-1]
  positions = [order.index(_definition(*stop)) for stop in stops]
  assert positions == sorted(positions)
