"""Tests of runs in which a component of a node raises; `make test-chaos`."""

import pytest

from support.launch import log_files
from support.system import program

pytestmark = pytest.mark.chaos

_SECONDS = 120

# The environment, the adder or the learner raises once in the process of the
# given node; a file marks that it has. The exception is that of a broken
# connection, and must not be mistaken for one between nodes.
_SCRIPT = """
import os, sys
from repertory import launch
from repertory.agents import dqn, impala
from repertory.environments.registry import registry
from repertory.launch.topologies import central

agent, topology, servers, node, part, steps = sys.argv[1:]

def make_failing(call, name):
  calls = []
  def failing(*arguments):
    output = os.readlink('/proc/self/fd/1')
    calls.append(None)
    if part == name and output.endswith(node) and len(calls) == 150:
      if not os.path.exists('has-raised'):
        open('has-raised', 'w').close()
        raise BrokenPipeError('out of balls')
    return call(*arguments)
  return failing

def make_environment(seed):
  environment = registry.make('catch', seed)
  environment.step = make_failing(environment.step, 'environment')
  return environment

class Failing:
  def make_adder(self, *arguments):
    adder = super().make_adder(*arguments)
    adder.put = make_failing(adder.put, 'adder')
    return adder

  def make_learner(self, *arguments, **settings):
    learner = super().make_learner(*arguments, **settings)
    learner.step = make_failing(learner.step, 'learner')
    return learner

class DQN(Failing, dqn.DQNBuilder):
  pass

class IMPALA(Failing, impala.IMPALABuilder):
  pass

if __name__ == '__main__':
  builder = DQN()
  if agent == 'impala':
    builder = IMPALA(impala.IMPALAConfig(batch_size=4, unroll_length=10))
  experiment = launch.Experiment(
    builder, make_environment, max_steps=int(steps), directory='run',
    num_actors=2, environments_per_actor=2, evaluation_episodes=20,
    evaluation_period=500)
  chosen = topology
  if int(servers):
    chosen = central.Central(num_inference_servers=int(servers))
  try:
    result = launch.run(experiment, chosen, 'local_mp')
    print('STEPS', result.status.steps)
  except launch.NodeError as error:
    print('NODE', error.failure.node)
    print(error)
    sys.exit(1)
"""

_DISTRIBUTED = ('dqn', 'distributed', '0')
_CENTRAL = ('impala', 'central', '0')
_WITH_SERVERS = ('impala', 'central', '1')


def _run(directory, settings, node, part, steps) -> program.Ended:
  script = directory / 'failing.py'
  script.write_text(_SCRIPT)
  path = node if '/' in node else f'{node}/0'
  arguments = [str(script), *settings, f'logs/nodes/{path}', part, str(steps)]
  ended = program.Program(arguments, str(directory)).wait(_SECONDS)
  assert ended.left == []
  assert (directory / 'has-raised').exists(), ended.output
  return ended


@pytest.mark.parametrize(
  ('settings', 'node', 'part', 'steps'),
  [
    (_DISTRIBUTED, 'actor/1', 'environment', 4000),
    (_WITH_SERVERS, 'inference/0', 'adder', 30000),
  ],
)
def test_others_continue(tmp_path, settings, node, part, steps):
  ended = _run(tmp_path, settings, node, part, steps)
  assert ended.code == 0, ended.output
  # Not a step is missing.
  assert f'STEPS {steps}' in ended.output
  (cause,) = (
    row['restarted_after']
    for row in log_files.nodes(tmp_path / 'run')
    if 'restarted_after' in row and row['node'] == node
  )
  assert 'BrokenPipeError: out of balls' in cause


@pytest.mark.parametrize(
  ('settings', 'part', 'node'),
  [
    (_DISTRIBUTED, 'learner', 'learner'),
    (_CENTRAL, 'adder', 'inference/0'),  # In the learner's process.
  ],
)
def test_run_ends_with_a_name(tmp_path, settings, part, node):
  ended = _run(tmp_path, settings, 'learner', part, 10**6)
  assert ended.code == 1, ended.output
  assert f'NODE {node}' in ended.output
  assert ended.output.count('BrokenPipeError: out of balls') == 1
  assert 'Traceback' in ended.output
