"""Tests of runs on several hosts, simulated by network namespaces."""

import json
import pathlib
import shutil
import subprocess
import sys

import pytest

from repertory.launch.experiments import directories
from support.system import cluster_hosts, namespaces

pytestmark = [
  pytest.mark.chaos,
  pytest.mark.skipif(
    not namespaces.can_be_made(), reason='needs network namespaces'
  ),
]

_TESTS = pathlib.Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _ray():
  pytest.importorskip('ray')


class _Run:
  """A training script with its own modules, on several hosts."""

  def __init__(self, tmp_path):
    self.directory = tmp_path / 'run'
    self._script = tmp_path / 'script'
    shutil.copytree(_TESTS / 'support' / 'cluster_training', self._script)

  def play(self, *events, hosts=3, without=(), **settings):
    """Runs the script with events; returns its result.

    Args:
      *events: See `cluster_hosts`.
      hosts: Number of hosts.
      without: Environment variables that the script does not get.
      **settings: Flags of the script.
    """
    settings = {'address': '{address}', 'directory': self.directory} | settings
    command = ['env', *(f'--unset={name}' for name in without)]
    command += [sys.executable, str(self._script / 'train.py')]
    command += [f'--{name}={value}' for name, value in settings.items()]
    scenario = {
      'hosts': hosts,
      'command': command,
      'logs': f'{settings["directory"]}/logs',
      'events': events,
    }
    program = subprocess.run(
      [
        *namespaces.ONE_HOST,
        *(sys.executable, '-m', cluster_hosts.__name__, json.dumps(scenario)),
      ],
      cwd=_TESTS,
      check=False,
      timeout=500,
      capture_output=True,
      text=True,
    )
    assert program.returncode == 0, program.stderr
    result = json.loads(program.stdout)
    assert result['left'] == [], result
    assert 'error' not in result, result
    return result

  def rows(self, label='nodes'):
    path = self.directory / f'logs/{label}.jsonl'
    return [json.loads(line) for line in path.read_text().splitlines()]

  def hosts(self):
    """Returns the hosts of each node, by generation."""
    found = {}
    for row in self.rows():
      if 'host' in row:
        found.setdefault(row['node'], []).append(row['host'])
    return found


@pytest.fixture(name='run')
def _make_run(tmp_path):
  return _Run(tmp_path)


@pytest.mark.parametrize(
  ('topology', 'agent', 'network', 'replay'),
  [
    ('distributed', 'dqn', '', 'auto'),
    ('distributed', 'dqn', 'fd78::/64', 'server'),
    ('central', 'impala', 'fd78::/64', 'auto'),
  ],
)
def test_nodes_of_all_hosts_learn(topology, agent, network, replay, run):
  result = run.play(
    agent=agent,
    topology=topology,
    network=network,
    replay=replay,
    steps=10_000,
  )
  assert result['code'] == 0, result['output']
  last = json.loads(result['output'].strip().splitlines()[-1])
  assert last['best_return'] >= 9
  address = cluster_hosts.other_address if network else cluster_hosts.address
  hosts = run.hosts()
  found = {host for generations in hosts.values() for host in generations}
  assert len(found) > 1 and found <= {address(host) for host in range(3)}
  for node in ('replay', 'learner'):
    assert hosts[node] == [address(0)]
  # As on one host: actors of environments, and replay ratio.
  by_node = {row['node']: row for row in run.rows() if 'host' in row}
  for index in range(3):
    ids = by_node[f'actor/{index}']['environment_ids']
    assert ids == list(range(index * len(ids), (index + 1) * len(ids)))
  if agent == 'dqn':  # Others learn once from each item.
    last = run.rows('replay')[-1]
    target = last['target_samples_per_insert']
    assert last['samples_per_insert'] == pytest.approx(target, rel=0.1)


def test_missing_token_is_reported_with_a_hint(run):
  if not hasattr(pytest.importorskip('ray').exceptions, 'AuthenticationError'):
    pytest.skip('this Ray asks for no token')
  result = run.play(hosts=1, without=('RAY_AUTH_MODE', 'RAY_AUTH_TOKEN'))
  assert result['code'] == 1
  assert 'SettingError: ray_address must be that' in result['output']
  assert 'set RAY_AUTH_MODE=token' in result['output']
  result = run.play(hosts=1, without=('RAY_AUTH_TOKEN',))
  assert result['code'] == 1
  assert 'SettingError: ray_address must be of a cluster' in result['output']
  assert 'no authentication token was found' in result['output']


def test_continues_without_replaceable_nodes(run):
  result = run.play(
    ['wait_for_steps', 1000],
    ['kill_node', 'actor/0'],
    ['kill_node', 'evaluator'],
    ['fill_disk', 1],
    ['wait_for_steps', 3000],
    ['kill_raylet', 2],
    ['wait_for_output', 'host'],
    steps=12_000,
  )
  assert result['code'] == 0, result['output']
  assert '12,000 of 12,000 steps' in result['output']
  generations = run.hosts()
  moved = [node for node, hosts in generations.items() if len(set(hosts)) > 1]
  assert moved, generations  # From the host whose raylet is gone.


def test_host_that_comes_back_does_no_harm(run):
  result = run.play(
    ['wait_for_steps', 1000],
    ['cut', 1],
    ['wait_for_output', 'was started again'],
    ['sleep', 3],
    ['heal', 1],
    ['sleep', 10],
    steps=25_000,
    network='fd78::/64',
  )
  assert result['code'] == 0, result['output']
  assert '25,000 of 25,000 steps' in result['output']


def test_learners_gossip_between_hosts(run):
  result = run.play(agent='impala', topology='gossip', steps=10_000)
  assert result['code'] == 0, result['output']
  learners = [f'actor_learner/{index}' for index in range(3)]
  assert len({run.hosts()[name][0] for name in learners}) > 1
  for name in learners:
    rows = [row for row in run.rows('gossip') if row['node'] == name]
    assert any(row['messages_per_second'] > 0 for row in rows), name


@pytest.mark.parametrize(
  ('node', 'replay'),
  [('learner', 'auto'), ('coordinator', 'auto'), ('replay', 'server')],
)
def test_all_start_again_without_what_they_need(node, replay, run):
  result = run.play(
    ['wait_for_steps', 4000],
    ['kill_node', node],
    steps=8000,
    hosts=2,
    replay=replay,
  )
  assert result['code'] == 0, result['output']
  assert '8,000 of 8,000 steps' in result['output']
  assert f'{node} was lost; all started again' in result['output']


def test_loss_of_the_head_ends_the_run_which_resumes_later(run):
  result = run.play(['wait_for_steps', 3000], ['kill_head'], steps=100_000)
  assert result['code'] == 1, result['output']
  assert 'The head of the Ray cluster has not replied' in result['output']
  assert result['seconds'] < 60
  saved = directories.load_checkpoint(str(run.directory)).state['counts'][
    'steps'
  ]
  assert saved >= 3000
  result = run.play(steps=saved + 2000)
  assert result['code'] == 0, result['output']
  assert 'resumed from checkpoint' in result['output']


def test_nothing_is_left_of_a_driver_that_is_killed(run):
  result = run.play(['wait_for_steps', 4000], ['kill_driver'], steps=100_000)
  assert result['code'] == -9
  saved = directories.load_checkpoint(str(run.directory)).state['counts'][
    'steps'
  ]
  result = run.play(steps=saved + 2000)
  assert result['code'] == 0, result['output']
  assert 'resumed from checkpoint' in result['output']


def test_resumes_on_other_hosts_from_a_storage(run, tmp_path):
  storage = tmp_path / 'storage'
  result = run.play(steps=3000, storage=storage)
  assert result['code'] == 0, result['output']
  run.directory = tmp_path / 'elsewhere'
  result = run.play(steps=6000, storage=storage, hosts=2)
  assert result['code'] == 0, result['output']
  assert '6,000 of 6,000 steps' in result['output']
  assert 'resumed from checkpoint' in result['output']
  # With what it had before.
  assert run.rows('replay')[-1]['size'] > 5900
