"""Tests of runs on two hosts, which are network namespaces."""

import json
import pathlib
import subprocess
import sys

import pytest

import namespaces
import two_hosts

pytestmark = [
  pytest.mark.chaos,
  pytest.mark.skipif(
    not namespaces.can_be_made(), reason='needs network namespaces'
  ),
]


@pytest.mark.parametrize('topology', ['distributed', 'central'])
@pytest.mark.parametrize('agent', ['dqn', 'impala'])
def test_nodes_of_both_hosts_learn(topology, agent, tmp_path):
  pytest.importorskip('ray')
  repertory = str(pathlib.Path(sys.executable).parent / 'repertory')
  command = [
    repertory, 'train', f'--agent={agent}', '--env=catch',
    f'--topology={topology}', '--lp_launch_type=ray',
    '--ray_address={address}', '--num_actors=2', '--steps=4000',
    f'--directory={tmp_path}/run',
  ]  # fmt: skip
  program = subprocess.run(
    [*namespaces.WITHIN_ONE, sys.executable, two_hosts.__file__, *command],
    cwd=pathlib.Path(two_hosts.__file__).parent,
    check=False,
    timeout=400,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )
  assert program.returncode == 0, program.stdout
  assert 'left: []' in program.stdout
  lines = (tmp_path / 'run/logs/nodes.jsonl').read_text().splitlines()
  rows = [json.loads(line) for line in lines]
  hosts = {row['node']: row['host'] for row in rows if 'host' in row}
  assert set(hosts.values()) == {two_hosts.HERE, two_hosts.THERE}
  for node in ('replay', 'learner'):
    assert hosts[node] == two_hosts.HERE
