"""Tests of runs whose nodes are killed or frozen; `make test-chaos`."""

import random
import re
import signal
import time

import psutil
import pytest

from repertory.launch.launchers import rpc
from support.launch import log_files
from support.system import program

pytestmark = pytest.mark.chaos

_SECONDS = 240
# After half of it, a silent node is taken for dead.
_TIMEOUT_SECONDS = 40

_DISTRIBUTED = ('--agent=dqn', '--topology=distributed')
_SERVED = (*_DISTRIBUTED, '--replay=server')
_CENTRAL = (
  '--agent=impala', '--topology=central', '--environments_per_actor=2',
  '--config.batch_size=4', '--config.unroll_length=10',
)  # fmt: skip
_WITH_UPDATERS = (
  '--agent=qtopt', '--env=gym:Pendulum-v1', '--topology=distributed',
  '--num_bellman_updaters=2', '--config.train_buffer_size=500',
  '--config.batch_size=16', '--config.samples_per_insert=4',
  '--config.hidden_sizes=16', '--config.num_samples=8',
  '--config.jit_compile=false', '--config.min_replay_size=100',
)  # fmt: skip
_WITH_SERVERS = (*_CENTRAL, '--num_inference_servers=1')

_GOSSIP = (
  '--agent=impala', '--topology=gossip', '--num_learners=3', '--num_actors=3',
  '--environments_per_actor=2', '--config.batch_size=2',
  '--config.unroll_length=10',
)  # fmt: skip

_NODES = [
  *((_DISTRIBUTED, n) for n in ('actor/1', 'evaluator', 'learner', 'replay')),
  *((_SERVED, n) for n in ('actor/1', 'learner', 'replay')),
  *((_CENTRAL, n) for n in ('actor/0', 'learner')),
  (_WITH_SERVERS, 'inference/0'),
  (_DISTRIBUTED, 'coordinator'),
  (_WITH_UPDATERS, 'bellman_updater/0'),
  *((_GOSSIP, n) for n in ('actor_learner/1', 'learner', 'coordinator')),
]
# A frozen process is found by its silence, whatever it is.
_CASES = [
  *((*case, signal.SIGKILL) for case in _NODES),
  *((_DISTRIBUTED, node, signal.SIGSTOP) for node in ('actor/1', 'learner')),
  (_DISTRIBUTED, 'coordinator', signal.SIGSTOP),
]


class _Run:
  """A run that learns until it is stopped."""

  def __init__(self, directory, settings):
    self.directory = directory / 'run'
    self.program = program.repertory(
      'train', '--env=catch', '--lp_launch_type=local_mp', '--num_actors=2',
      '--steps=1000000000', '--directory=run', '--checkpoint_period_seconds=2',
      '--evaluation_episodes=2', '--evaluation_period=1000',
      f'--timeout_seconds={_TIMEOUT_SECONDS}', *settings, cwd=directory,
    )  # fmt: skip

  def wait_for_checkpoint(self) -> None:
    program.wait_for_learning(self.program, self.directory, _SECONDS)
    self._wait(lambda: self._checkpoint() > 1, 'a second checkpoint')

  def wait_for_progress(self) -> None:
    """Waits for new steps, updates, evaluations and checkpoints."""
    before = self._totals()

    def progresses():
      return all(new > old for new, old in zip(self._totals(), before))

    self._wait(progresses, 'progress of the run')

  def hit(self, node: str) -> None:
    """Kills a node, as soon as its process exists."""

    def is_hit():
      try:
        self.program.node(node).kill()
      except (LookupError, psutil.NoSuchProcess, FileNotFoundError):
        return False
      return True

    self._wait(is_hit, f'a process of {node}')

  def wait_for_start_of(self, node: str) -> None:
    """Waits until a node has been started for the second time."""
    events = {'restarted_after', 'warning'}

    def has_started_again():
      rows = log_files.nodes(self.directory)
      return sum(r['node'] == node and not events & set(r) for r in rows) > 1

    self._wait(has_started_again, f'{node} to start again')

  def _totals(self) -> list[float]:
    paths = [
      self.directory / 'logs' / f'{name}.csv'
      for name in ('actors', 'learner', 'evaluator')
    ]
    # There may have been no evaluation yet.
    sizes = [path.stat().st_size if path.exists() else 0 for path in paths]
    return [*sizes, self._checkpoint()]

  def _checkpoint(self) -> int:
    names = (self.directory / 'checkpoints').glob('0*')
    return max((int(path.name) for path in names), default=0)

  def _wait(self, condition, what: str) -> None:
    def is_true():
      assert self.program.is_running(), self.program.output()
      return condition()

    program.wait_until(is_true, _SECONDS, what)

  def stop(self) -> program.Ended:
    self.program.terminate()
    ended = self.program.wait(_SECONDS)
    assert ended.code == 128 + signal.SIGTERM, ended.output
    assert ended.left == []
    return ended


@pytest.mark.parametrize(
  ('settings', 'node', 'fault'),
  _CASES,
  ids=lambda v: ' '.join(v[:3]) if isinstance(v, tuple) else str(v),
)
def test_run_continues(tmp_path, settings, node, fault):
  _check_continues(tmp_path, settings, node, fault)


@pytest.mark.parametrize('node', ['actor/1', 'learner'])
def test_run_continues_without_launchpad(tmp_path, monkeypatch, node):
  monkeypatch.setenv(rpc.VARIABLE, rpc.GRPC)
  _check_continues(tmp_path, _DISTRIBUTED, node, signal.SIGKILL)


def _check_continues(directory, settings, node, fault):
  """Injects a fault into a node of a run, which must continue."""
  run = _Run(directory, settings)
  run.wait_for_checkpoint()
  run.program.node(node).send_signal(fault)
  run.wait_for_start_of('learner' if node == 'coordinator' else node)
  run.wait_for_progress()
  ended = run.stop()
  assert ' restart' in ended.output, ended.output
  assert node in log_files.restarted(run.directory)


def test_run_continues_without_its_zygote(tmp_path):
  run = _Run(tmp_path, _DISTRIBUTED)
  run.wait_for_checkpoint()
  zygote = run.program.node('learner').parent()
  assert zygote == run.program.node('actor/1').parent()
  zygote.kill()
  run.wait_for_start_of('learner')
  run.wait_for_progress()
  assert run.program.node('learner').parent() != zygote
  run.stop()


def test_run_survives_twenty_random_faults(tmp_path):
  chance = random.Random(1)
  replaceable = ('actor/0', 'actor/1', 'evaluator', 'inference/0')
  run = _Run(tmp_path, (*_WITH_SERVERS, '--max_restarts=100'))
  run.wait_for_checkpoint()
  for number in range(1, 21):
    is_tenth = number % 10 == 0
    run.hit(chance.choice(('learner', 'replay') if is_tenth else replaceable))
    if is_tenth:
      run.wait_for_progress()
    else:
      time.sleep(chance.uniform(0, 3))
  run.wait_for_progress()
  ended = run.stop()
  restarts = int(re.findall('([0-9]+) restarts?', ended.output)[-1])
  # A node that is hit as it starts is not there yet, and is waited for; one
  # that is hit while all others are being replaced goes with them.
  assert restarts >= 10, ended.output
