"""Tests of the logger for Weights & Biases, with the offline library."""

import glob
import importlib
import json
import math
import os

import pytest

from repertory.components.config import settings
from repertory.launch.experiments import callbacks
from support.launch import log_files
from support.system import program

_SECONDS = 120

# In a process of its own, for the library leaves some of its files open.
_SCRIPT = """
import math, pathlib
from repertory import launch
from repertory.components import loggers
from repertory.launch.experiments import callbacks

def play(name, is_resumed, rows, outcome=callbacks.DONE):
  pathlib.Path(name, 'logs').mkdir(parents=True, exist_ok=True)
  logger = callbacks.WandB('p')
  logger.start(callbacks.RunEvent('a run', name, {}, is_resumed=is_resumed))
  for label, row in rows:
    logger.write(label, row)
  logger.close(callbacks.EndEvent(outcome, '', loggers.Status('a run')))

launch.run(
  launch.make_experiment(
    'dqn', 'catch', max_steps=300, directory='whole',
    evaluation_episodes=3, config={'min_replay_size': 50, 'hidden_sizes': (8,)},
    loggers=[callbacks.WandB('catching', tags=['small'])],
  ),
  display=False,
)
row = ('learner', {'steps': 1, 'loss': 0.5})
play('resumed', False, [row], callbacks.FAILED)
play('resumed', True, [row])
play('resumed', False, [row])
rows = [
  ('inference', {'steps': 4, 'node': f'inference/{i}', 'fill': i / 2})
  for i in range(2)
]
rows += [('learner', {'steps': 5, 'loss': math.nan, 'text': 'none'})]
play('nodes', False, rows)
"""


@pytest.fixture(name='folder', scope='module')
def _folder(tmp_path_factory):
  """Returns the folder in which the script ran."""
  pytest.importorskip('wandb')
  folder = tmp_path_factory.mktemp('wandb')
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv('WANDB_MODE', 'offline')
    patch.setenv('WANDB_ERROR_REPORTING', 'false')
    ended = program.Program(['-c', _SCRIPT], str(folder)).wait(_SECONDS)
  assert ended.code == 0, ended.output
  assert ended.left == []
  return folder


def _read(directory):
  """Returns the records of each run below a directory, in order of time."""
  # What `wandb sync` reads, too.
  datastore = importlib.import_module('wandb.sdk.internal.datastore')
  internal = importlib.import_module('wandb.proto.wandb_internal_pb2')
  pattern = f'{directory}/logs/wandb/offline-run-*/*.wandb'
  for path in sorted(glob.glob(pattern), key=os.path.getmtime):
    store, records = datastore.DataStore(), []
    store.open_for_scan(path)
    while (data := store.scan_data()) is not None:
      records.append(internal.Record.FromString(bytes(data)))
    store.close()
    yield records


def _all_of(records, kind):
  return [
    getattr(one, kind)
    for one in records
    if one.WhichOneof('record_type') == kind
  ]


def _rows(records):
  return [
    {
      item.key or '/'.join(item.nested_key): json.loads(item.value_json)
      for item in history.item
    }
    for history in _all_of(records, 'history')
  ]


@pytest.mark.chaos
def test_rows_of_a_run_arrive(folder):
  directory = folder / 'whole'
  (records,) = _read(directory)
  rows = _rows(records)
  for label in ('actors', 'learner', 'replay', 'evaluator'):
    logged = log_files.rows(directory, label)
    assert logged
    found = [row for row in rows if f'{label}/count' in row]
    assert len(found) == len(logged)
    for row, expected in zip(found, logged):
      logged = {
        name.removeprefix(f'{label}/'): value
        for name, value in row.items()
        if not name.startswith('_') and value is not None
      }
      assert logged == pytest.approx(expected, nan_ok=True)
  (run,) = _all_of(records, 'run')
  assert (run.project, run.display_name) == ('catching', 'dqn on catch, single')
  assert list(run.tags) == ['small']
  config = {one.key: json.loads(one.value_json) for one in run.config.update}
  assert config['config.min_replay_size'] == 50
  assert (config['max_steps'], config['topology']) == (300, 'single')
  drawn = {one.glob_name: one.step_metric for one in _all_of(records, 'metric')}
  assert drawn['*'] == 'steps'
  assert [one.exit_code for one in _all_of(records, 'exit')] == [0]


@pytest.mark.chaos
def test_resumed_run_resumes_the_same(folder):
  runs = list(_read(folder / 'resumed'))
  first, second, afresh = [_all_of(run, 'run')[0].run_id for run in runs]
  assert first == second != afresh
  assert [_all_of(run, 'exit')[0].exit_code for run in runs] == [1, 0, 0]


@pytest.mark.chaos
def test_nodes_have_rows_of_their_own(folder):
  (records,) = _read(folder / 'nodes')
  found = [
    {name: value for name, value in row.items() if not name.startswith('_')}
    for row in _rows(records)
  ]
  assert found == [
    {'steps': 4, 'inference/0/fill': 0.0},
    {'steps': 4, 'inference/1/fill': 0.5},
    pytest.approx({'steps': 5, 'learner/loss': math.nan}, nan_ok=True),
  ]


def test_without_the_package_it_says_what_to_do(monkeypatch):
  monkeypatch.setattr('importlib.util.find_spec', lambda name: None)
  with pytest.raises(settings.SettingError, match=r'repertory\[wandb\]'):
    callbacks.WandB('p')
