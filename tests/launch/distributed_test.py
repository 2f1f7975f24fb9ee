"""Tests of the distributed topology, in threads and in processes."""

import signal
import time

import pytest

from repertory import launch
from repertory.agents import dqn
from repertory.environments.registry import registry
from support.launch import log_files
from support.system import program, rare_cases, stacks

_SECONDS = 300
_STEPS = 900
# XLA takes longer to compile than so few steps.
_SETTINGS = ('--env=catch', '--num_actors=2', '--config.jit_compile=false')

# Environment and agent as somebody's own.
_OWN = """
from repertory.agents import dqn
from repertory.environments.games import catch

def make(seed):
  return catch.Catch(seed=seed)

class Builder(dqn.DQNBuilder):
  pass
"""
_OWN_NAMES = ('--env=own:make', '--agent=own:Builder')


def _train(tmp_path, launch_type, *arguments, steps=_STEPS):
  return program.repertory(
    'train',
    *_SETTINGS,
    '--topology=distributed',
    f'--lp_launch_type={launch_type}',
    f'--steps={steps}',
    '--directory=run',
    *arguments,
    cwd=tmp_path,
  )


class TestDistributed:
  @pytest.mark.parametrize(
    'launch_type', rare_cases.daily(['local_mt', 'local_mp'], ['local_mt'])
  )
  @stacks.usual_carrier
  @pytest.mark.usefixtures('each_carrier')
  def test_runs_to_the_end_at_the_stated_ratio(self, tmp_path, launch_type):
    (tmp_path / 'own.py').write_text(_OWN)
    ended = _train(tmp_path, launch_type, *_OWN_NAMES).wait(_SECONDS)
    assert ended.code == 0, ended.output
    assert ended.left == []
    assert f'{_STEPS:,} of {_STEPS:,} steps' in ended.output
    replay = log_files.rows(tmp_path / 'run', 'replay')[-1]
    learner = log_files.rows(tmp_path / 'run', 'learner')
    actors = log_files.rows(tmp_path / 'run', 'actors')
    # All steps are items, but for the one per actor that waits for the next
    # step, and one or two more before it: n = 3.
    assert _STEPS - 2 * 3 <= replay['inserts'] <= _STEPS
    # Learning used up what is due, and not more than the limiter's buffer.
    due = (replay['inserts'] - 200) * 16
    learned = 32 * log_files.total(learner)
    assert due - 32 < learned
    # 2 × (32 + 16 × 2 × 4) = 320.
    assert replay['samples'] <= due + 320
    assert replay['samples'] == pytest.approx(due, rel=0.05)
    # No episode is missing from the log.
    assert log_files.total(actors) == actors[-1]['episodes']
    assert actors[-1]['episodes'] in (_STEPS // 9, _STEPS // 9 - 1)
    assert replay['samples_per_insert'] == pytest.approx(16, rel=0.05)
    nodes = {node['node']: node for node in log_files.nodes(tmp_path / 'run')}
    epsilons = [nodes[f'actor/{i}']['epsilons'][0] for i in range(2)]
    assert epsilons == pytest.approx([0.4, 0.4**8])

  @pytest.mark.chaos
  def test_ctrl_c_saves_and_ends(self, tmp_path):
    launch_type = 'local_mt'  # For processes see the tests of `central`.
    running = _train(tmp_path, launch_type, steps=10**6)
    program.wait_for_learning(running, tmp_path / 'run', _SECONDS)
    running.interrupt(signal.SIGINT)
    ended = running.wait(_SECONDS)
    assert ended.code == 128 + signal.SIGINT, ended.output
    assert ended.left == []
    assert 'same command resumes' in ended.output
    assert (tmp_path / 'run' / 'checkpoints' / '00000001').is_dir()
    # It does resume.
    steps = int(log_files.rows(tmp_path / 'run', 'replay')[-1]['steps'])
    again = _train(tmp_path, launch_type, steps=steps + 500).wait(_SECONDS)
    assert again.code == 0, again.output
    assert f'{steps + 500:,} of {steps + 500:,} steps' in again.output


def test_bad_reward_is_reported_with_slot_and_step(tmp_path):
  def make_environment(seed):
    environment = registry.make('catch', seed)
    step, steps = environment.step, []

    def failing_step(action):
      steps.append(action)
      timestep = step(action)
      is_bad = len(steps) == 200
      return timestep._replace(reward=float('nan')) if is_bad else timestep

    environment.step = failing_step
    return environment

  config = dqn.DQNConfig(hidden_sizes=(8,), jit_compile=False)
  experiment = launch.Experiment(
    dqn.DQNBuilder(config), make_environment, max_steps=10**6,
    directory=str(tmp_path), evaluation_episodes=0,
  )  # fmt: skip
  with pytest.raises(launch.NodeError) as caught:
    launch.run(experiment, 'distributed', display=False)
  failure = caught.value.failure
  assert failure.node == 'actor/0'
  assert failure.is_bad_input
  assert 'Slot 0, step 2 of its episode: reward' in failure.cause


class TestProcesses:
  @pytest.mark.parametrize('node', ['replay', 'coordinator'])
  @pytest.mark.chaos
  def test_killed_node_ends_the_program_with_its_name(self, tmp_path, node):
    running = _train(tmp_path, 'local_mp', '--max_restarts=0', steps=10**6)
    program.wait_for_learning(running, tmp_path / 'run', _SECONDS)
    running.node(node).kill()
    ended = running.wait(60)
    assert ended.code == 1, ended.output
    assert ended.left == []
    assert f"Node '{node}' failed" in ended.output
    assert 'signal 9' in ended.output
    assert 'run/logs\n' in ended.output

  @pytest.mark.chaos
  def test_ctrl_c_while_the_nodes_start_ends_them(self, tmp_path):
    running = _train(tmp_path, 'local_mp', steps=10**6)
    program.wait_until(
      lambda: 'starting: ' in running.output(), _SECONDS, 'the display'
    )
    running.interrupt(signal.SIGINT)
    ended = running.wait(30)
    assert ended.code == 128 + signal.SIGINT, ended.output
    assert 'Interrupted before the first step' in ended.output
    assert ended.left == []

  @pytest.mark.chaos
  @pytest.mark.usefixtures('each_carrier')
  def test_killed_launcher_takes_all_nodes_with_it(self, tmp_path):
    running = _train(tmp_path, 'local_mp', steps=10**6)
    program.wait_for_learning(running, tmp_path / 'run', _SECONDS)
    assert len(running.processes()) == 8  # With the zygote.
    running.kill()
    deadline = time.monotonic() + 10
    while running.processes() and time.monotonic() < deadline:
      time.sleep(0.1)
    assert running.wait(10).left == []
