"""Tests of callbacks in another process, which may be killed."""

import json

import pytest

from support.launch import log_files
from support.system import program

pytestmark = pytest.mark.chaos

_SECONDS = 240

_SCRIPT = """
import json, os, sys
from repertory import launch
from repertory.launch.experiments import callbacks

class Noting(launch.Callback):
  def __init__(self):
    self.num_starts = 0

  def note(self, name, **event):
    event = {{'name': name, 'pid': os.getpid(), **event}}
    with open('events.jsonl', 'a') as file:
      print(json.dumps(event), file=file)

  def on_start(self, run):
    self.num_starts += 1
    self.note('start', is_resumed=run.is_resumed, steps=run.steps,
              num_restarts=run.num_restarts, num_starts=self.num_starts)

  def on_episodes(self, episodes):
    self.note('episodes', num=len(episodes.lengths))
    {trouble}

  def on_end(self, end):
    self.note('end', outcome=end.outcome, steps=end.status.steps)

experiment = launch.make_experiment(
  'dqn', 'catch', max_steps={steps}, directory='run', num_actors=2,
  checkpoint_period_learner_steps=100, evaluation_episodes=2,
  config={{'min_replay_size': 50, 'samples_per_insert': 1.0}},
  callbacks=[Noting()], loggers={loggers},
)
try:
  result = launch.run(experiment, 'distributed', 'local_mp', display=False)
except launch.NodeError as error:
  print('FAILED', error)
  sys.exit(1)
print('DONE', result.status.steps, result.status.num_restarts)
print(os.getpid(), 'of the launcher')
"""


def _start(folder, steps, trouble='pass', loggers='[]'):
  script = _SCRIPT.format(steps=steps, trouble=trouble, loggers=loggers)
  return program.Program(['-c', script], str(folder))


def _read_events(folder):
  lines = (folder / 'events.jsonl').read_text().splitlines()
  return [json.loads(line) for line in lines]


@pytest.mark.parametrize('node', ['coordinator', 'learner'])
def test_they_are_made_anew_when_all_nodes_are_started_again(tmp_path, node):
  running = _start(tmp_path, 20_000)
  program.wait_until(
    lambda: list((tmp_path / 'run' / 'checkpoints').glob('0*')),
    _SECONDS,
    'a checkpoint',
  )
  running.node(node).kill()
  ended = running.wait(_SECONDS)
  assert ended.code == 0, ended.output
  assert ended.left == []
  assert 'DONE 20000 1' in ended.output
  events = _read_events(tmp_path)
  first, second = [one for one in events if one['name'] == 'start']
  assert (first['is_resumed'], first['num_restarts']) == (False, 0)
  assert (second['is_resumed'], second['num_restarts']) == (True, 1)
  assert second['steps'] > 0
  # Unpickled again, without state of the earlier start.
  assert (first['num_starts'], second['num_starts']) == (1, 1)
  assert first['pid'] != second['pid']
  outcomes = [one['outcome'] for one in events if one['name'] == 'end']
  # A killed observer gets no `on_end`.
  assert outcomes == (['done'] if node == 'coordinator' else ['failed', 'done'])
  launcher = ended.output.split('of the launcher')[0].split()[-1]
  assert str(second['pid']) != launcher


def test_weights_and_biases_leave_nothing_behind(tmp_path, monkeypatch):
  pytest.importorskip('wandb')
  monkeypatch.setenv('WANDB_ERROR_REPORTING', 'false')
  loggers = "[callbacks.WandB('p', mode='offline')]"
  ended = _start(tmp_path, 2_000, loggers=loggers).wait(_SECONDS)
  assert ended.code == 0, ended.output
  assert ended.left == []
  warnings = [r for r in log_files.nodes(tmp_path / 'run') if 'warning' in r]
  assert warnings == []
  assert list((tmp_path / 'run/logs/wandb').glob('offline-run-*/*.wandb'))
