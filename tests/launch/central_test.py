"""Tests of the central topology, in threads and in processes."""

import json
import signal
import subprocess
import sys

import pytest

from repertory import launch
from repertory.launch.topologies import central
from support.launch import log_files
from support.system import program

_SECONDS = 300
_STEPS = 1_500


def _nodes(tmp_path):
  return {node['node']: node for node in log_files.nodes(tmp_path / 'run')}


def _inference_rows(tmp_path):
  path = tmp_path / 'run' / 'logs' / 'inference.jsonl'
  return [json.loads(line) for line in path.read_text().splitlines()]


def test_dqn_runs_to_the_end_at_the_stated_ratio(tmp_path):
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=_STEPS, directory=str(tmp_path / 'run'),
    num_actors=2, environments_per_actor=2, config={'jit_compile': False},
  )  # fmt: skip
  launch.run(experiment, central.Central(), display=False)
  replay = log_files.rows(tmp_path / 'run', 'replay')[-1]
  learner = log_files.rows(tmp_path / 'run', 'learner')
  actors = log_files.rows(tmp_path / 'run', 'actors')
  # All steps are items but for those of the open transitions, n = 3.
  steps = int(replay['steps'])
  assert _STEPS <= steps <= _STEPS + 3
  assert steps - 4 * 3 <= replay['inserts'] <= steps
  due = (replay['inserts'] - 200) * 16
  assert due - 32 < 32 * log_files.total(learner)
  assert replay['samples'] == pytest.approx(due, rel=0.1)
  assert log_files.total(actors) == actors[-1]['episodes']
  # ε follows from the environment's id, as in every topology.
  epsilons = _nodes(tmp_path)['inference/0']['epsilons']
  assert epsilons == pytest.approx([0.4 ** (1 + 7 * i / 3) for i in range(4)])
  # The evaluator's rows are of its own: all training rows come from actors.
  assert {row['node'] for row in _inference_rows(tmp_path)} == {'inference/0'}
  assert log_files.rows(tmp_path / 'run', 'evaluator')


def test_who_only_steps_environments_loads_no_tensorflow():
  # In a process of its own, as other tests have imported it.
  code = (
    'import sys\n'
    'from repertory.launch.nodes import thin_actor\n'
    "assert not {'tensorflow', 'reverb'} & set(sys.modules)\n"
  )
  subprocess.run([sys.executable, '-c', code], check=True, timeout=_SECONDS)


@pytest.mark.chaos
def test_ctrl_c_saves_and_another_topology_resumes(tmp_path):
  # With actors that only step environments and need no memory for TensorFlow,
  # and with inference in a process and on a device of its own.
  running = program.repertory(
    'train',
    '--topology=central',
    '--lp_launch_type=local_mp',
    '--num_actors=2',
    '--environments_per_actor=2',
    '--config.jit_compile=false',
    '--directory=run',
    '--agent=impala',
    '--num_inference_servers=1',
    '--inference_devices=CPU:1',
    '--learner_devices=CPU:0,CPU:2',
    f'--steps={10**6}',
    cwd=tmp_path,
  )
  program.wait_for_learning(running, tmp_path / 'run', _SECONDS)
  assert running.node('actor/0').memory_full_info().uss < 2**26
  assert _nodes(tmp_path)['inference/0']['device'] == 'CPU:1'
  running.interrupt(signal.SIGINT)
  ended = running.wait(_SECONDS)
  assert ended.code == 128 + signal.SIGINT, ended.output
  assert ended.left == []
  steps = int(log_files.rows(tmp_path / 'run', 'replay')[-1]['steps'])
  experiment = launch.make_experiment(
    'impala', 'catch', max_steps=steps + 500, directory=str(tmp_path / 'run'),
    num_actors=2, environments_per_actor=2, config={'jit_compile': False},
  )  # fmt: skip
  status = launch.run(experiment, display=False).status
  assert status.steps >= steps + 500
  assert 'resumed' in status.message


@pytest.mark.parametrize(
  ('settings', 'message'),
  [
    ({'inference_devices': ('cpu',)}, "like 'CPU:0' or 'GPU:1', got 'cpu'"),
    ({'inference_devices': ('GPU:7',)}, 'this machine, got GPU:7; it has'),
    ({'learner_devices': ('CPU:0', 'CPU:1')}, r'\(jit_compile=False\)'),
    ({'num_inference_servers': -1}, 'must be at least 0, got -1'),
    ({'num_inference_servers': 2}, 'num_actors must be at least .* 2'),
    (
      {'num_inference_servers': 1, 'inference_devices': ('CPU:0', 'CPU:1')},
      'inference_devices must be at most 1, one per inference server',
    ),
    ({'double_buffering': True}, 'environments_per_actor must be at least'),
  ],
)
def test_bad_settings_are_refused(tmp_path, settings, message):
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=1_000, directory=str(tmp_path / 'run')
  )
  with pytest.raises(ValueError, match=message):
    launch.run(experiment, central.Central(**settings))
  assert not (tmp_path / 'run').exists()
