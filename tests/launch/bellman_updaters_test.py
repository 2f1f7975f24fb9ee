"""Tests of runs with Bellman updaters."""

import csv
import dataclasses
import pathlib
import re
import shlex

import pytest
import sonnet as snt

from repertory import launch
from repertory.agents import qtopt
from repertory.agents.qtopt import learning
from repertory.components.checkpoints import checkpointing
from repertory.environments.registry import registry
from repertory.launch.cli import commands
from repertory.launch.topologies import central, distributed
from support.launch import log_files

_CONFIG = qtopt.QTOptConfig(
  hidden_sizes=(4,), num_samples=5, num_elites=2, batch_size=4,
  min_replay_size=20, num_random_steps=20, samples_per_insert=4.0,
  target_update_rate=0.1, target_lag=3, jit_compile=False,
)  # fmt: skip
_WITH = dataclasses.replace(_CONFIG, train_buffer_size=40)


def _run(directory, builder, topology='distributed', max_steps=60, **changes):
  experiment = launch.Experiment(
    builder, registry.make_factory('tensor:pendulum'), max_steps,
    str(directory), seed=3,
    **{'evaluation_episodes': 0, **changes},
  )  # fmt: skip
  return launch.run(experiment, topology, display=False)


def _rows(directory, name):
  with open(directory / 'logs' / f'{name}.csv') as file:
    return list(csv.DictReader(file))


class _LateUpdater(learning.QTOptBellmanUpdater):
  def __call__(self, sample, seed):
    data, target = super().__call__(sample, seed)
    return data, snt.Linear(1, name='late')(target[:, None])[:, 0]


class _Late(qtopt.QTOptBuilder):
  def make_bellman_updater(self, spec):
    updater = super().make_bellman_updater(spec)
    updater.__class__ = _LateUpdater
    return updater


def test_variables_that_come_late_are_refused(tmp_path):
  expected = r'a call of _LateUpdater: late/w:0 \[1, 1\]'
  with pytest.raises(launch.NodeError, match=expected):
    _run(tmp_path, _Late(_WITH))


@pytest.mark.chaos
@pytest.mark.parametrize('kind', [distributed.Distributed, central.Central])
def test_in_nodes_of_their_own(tmp_path, kind):
  """They finish the actors' items, and resume from a checkpoint of both."""
  topology = kind(num_bellman_updaters=2)
  builder = qtopt.QTOptBuilder(_WITH)
  for max_steps in (100, 130):
    status = _run(tmp_path, builder, topology, max_steps).status
    tables = {table.name: table for table in status.tables}
    assert set(tables) == {'replay', 'train_buffer'}
    drawn, due = status.learner_steps * 4, (max_steps - 20) * 4
    # One side may lead by the error buffers of both tables, of two iterations
    # each, but for the first batch of targets.
    most = due + 2 * (4 + 4) + 2 * (4 + 4) - 4
    # At each of two ends there may be parts of batches: of both updaters and of
    # the learner, and of what was not due.
    least = due - 4 - 2 * (2 * 3 + 3 + 3 + 3)
    assert least <= drawn <= most
    assert tables['train_buffer'].inserts - drawn < 4 + 4 + 4 * 4
  names = {row['node'] for row in _rows(tmp_path, 'bellman_updaters')}
  assert names == {'bellman_updater/0', 'bellman_updater/1'}
  resumed = [
    row['resumed_from']
    for row in log_files.nodes(tmp_path)
    if row['node'] == 'learner' and 'resumed_from' in row
  ]
  assert resumed[-1] and status.target_age_steps is not None
  state = checkpointing.Checkpointer(str(tmp_path / 'checkpoints')).load().state
  assert set(state['tables']) == {'replay', 'train_buffer'}


_ON = '--config.train_buffer_size=500'


@pytest.mark.parametrize(
  ('flags', 'message'),
  [
    (
      ['--num_bellman_updaters=2'],
      "--num_bellman_updaters must be left out for agent 'qtopt' with these",
    ),
    (
      [_ON, '--num_bellman_updaters=0'],
      '--num_bellman_updaters must be at least 1 or left out, got 0',
    ),
    (
      [_ON, '--topology=single'],
      "--config.train_buffer_size must be left out with topology 'single'",
    ),
    (
      ['--config.train_buffer_size=100'],
      'train_buffer_size = 100, or it can never be sampled; got 256',
    ),
    (
      [_ON, '--config.prioritized=true'],
      '--config.prioritized must be false with train_buffer_size',
    ),
    (
      [_ON, '--reward_model=rnd'],
      '--reward_model must be left out if Bellman updaters',
    ),
    ([_ON, '--steps=1000'], 'environment steps make 1000 items at most'),
  ],
)
def test_refusals(tmp_path, monkeypatch, capsys, flags, message):
  monkeypatch.chdir(tmp_path)
  code = commands.run(
    [
      'train',
      '--agent=qtopt',
      '--env=gym:Pendulum-v1',
      '--topology=distributed',
      *flags,
    ]
  )
  output = capsys.readouterr().err
  assert code == 2, output
  assert message in output, output
  assert not list(tmp_path.iterdir())


@pytest.mark.chaos
def test_recipe_of_the_docs(tmp_path, monkeypatch):
  """From data to acting, in small."""
  page = pathlib.Path(__file__).parents[2] / 'docs' / 'agents' / 'qtopt.md'
  section = page.read_text().split('## From data to acting\n')[1]
  block = re.search(r'```sh\n(.*?)```', section, re.DOTALL)
  assert block is not None
  monkeypatch.chdir(tmp_path)
  lines = block[1].splitlines()
  assert len(lines) == 4
  for line in lines:
    command = shlex.split(line)[1:]
    small = [
      '--steps=450', '--evaluation_episodes=1', '--config.hidden_sizes=8',
      '--config.batch_size=8', '--config.samples_per_insert=8',
      '--config.jit_compile=false', '--config.min_replay_size=50',
    ]  # fmt: skip
    assert commands.run([*command, *small]) == 0
  for folder, share in (('half', 0.5), ('quarter', 0.25)):
    run = tmp_path / 'runs' / 'warm' / folder
    rows = _rows(run, 'replay')
    # With the share that is of data, fewer are drawn.
    assert float(rows[-1]['target_samples_per_insert']) == 8 * (1 - share)
    described = [r for r in log_files.nodes(run) if r.get('initial_from')]
    assert [r['node'] for r in described] == ['learner']
