"""Tests of workers in processes, with idle processes."""

import functools
import pickle
import signal
import uuid

import psutil
import pytest

from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.launchers import local_nodes, node_process
from repertory.launch.platform import child_processes, zygote
from support.system import program

# Processes end after a minute, even if the tests are killed.
_SLEEP = 'import time; time.sleep(60)'
_PARENT = f"""
import subprocess, sys
subprocess.run([sys.executable, '-c', {_SLEEP!r}])
"""
_GRANDPARENT = f"""
import subprocess, sys
subprocess.run([sys.executable, '-c', {_PARENT!r}])
"""


class _Spec(node_process.NodeLaunchSpec):
  """Launch spec of a process that runs other code than that of a node."""

  code = _SLEEP

  @property
  def task(self):
    return pickle.dumps(functools.partial(exec, self.code, {}))


class _GrandparentSpec(_Spec):
  code = _GRANDPARENT


class _Run:
  """The processes of a run, marked by an environment variable."""

  def __init__(self, directory, **specs: type[_Spec]):
    """Starts a process for each node, by its name with '_' for '/'."""
    self._mark = uuid.uuid4().hex
    planned = launcher_lib.NodeGraph(60.0)
    for key in specs:
      name = key.replace('_', '/')
      planned.add(launcher_lib.PlannedNode(name, lambda context: None))
    self.workers = local_nodes.LocalProcesses(planned, {}, str(directory))
    self.workers._zygote = zygote.Zygote(self._mark)
    for plan, spec in zip(planned, specs.values()):
      self.workers.start(spec(plan, {}, planned.rpc, None))

  def living(self) -> set[int]:
    """Returns the ids of all running processes of the run."""
    found = set()
    for process in psutil.process_iter():
      try:
        # Of one that has ended there is no environment.
        if process.environ().get(child_processes.RUN_VARIABLE) == self._mark:
          found.add(process.pid)
      except psutil.Error:
        continue
    return found

  def wait_for(self, count: int) -> set[int]:
    """Waits until `count` processes run; returns their ids."""
    program.wait_until(
      lambda: len(self.living()) == count, 30, f'{count} processes'
    )
    return self.living()

  def end(self) -> None:
    self.workers.kill_all(self.workers.names)
    self.workers.end()
    assert self.living() == set()


@pytest.fixture(name='start')
def _start(tmp_path):
  runs = []

  def start(**specs):
    runs.append(_Run(tmp_path, **specs))
    return runs[-1]

  yield start
  for run in runs:
    run.end()


def test_restart_kills_what_the_node_left_and_nothing_else(start):
  other = start(actor_0=_Spec)
  run = start(learner=_Spec, actor_0=_GrandparentSpec, actor_1=_GrandparentSpec)
  all_ids = run.wait_for(1 + 1 + 3 + 3)  # With the zygote.
  other_ids = other.wait_for(2)
  ended = run.workers.processes['actor/1']
  strays = {p.pid for p in psutil.Process(ended.pid).children(recursive=True)}
  psutil.Process(ended.pid).kill()  # But not its children.
  assert ended.wait(30) == -signal.SIGKILL
  spared = all_ids - strays - {ended.pid}
  assert run.living() == spared | strays

  run.workers.restart('actor/1')
  # The new process and its children.
  program.wait_until(
    lambda: len(run.living() - spared - strays) == 3, 30, 'the new process'
  )
  program.wait_until(lambda: not run.living() & strays, 30, 'their end')
  assert run.living() >= spared
  assert run.workers.find_ended() == []
  assert other.living() == other_ids


def test_what_a_node_left_is_killed_after_the_zygote(start):
  run = start(learner=_Spec, actor_0=_GrandparentSpec)
  run.wait_for(1 + 1 + 3)
  psutil.Process(run.workers._zygote.pid).kill()
  assert run.workers.processes['learner'].wait(30) == -signal.SIGKILL
  assert sorted(run.workers.find_ended()) == ['actor/0', 'learner']

  run.workers.restart('learner')
  assert len(run.wait_for(2)) == 2  # A new zygote and the learner.
  assert run.workers.find_ended() == ['actor/0']


def test_what_xla_prints_in_any_case_is_left_out(start, tmp_path):
  printed = (
    'WARNING: All log messages before absl::InitializeLog() is called are '
    'written to STDERR',
    'I0000 00:00:1764.8 99 device_compiler.h:186] Compiled cluster using XLA!  '
    'This line is logged at most once for the lifetime of the process.',
    'it learns',
    '2026-11-27 01:40:27.8: E external/local_xla/xla/stream_executor/stream_'
    'executor_internal.h:177] SetPriority unimplemented for this stream.',
  )
  run = start(learner=_Spec)
  (tmp_path / 'learner/0').write_text('\n'.join(printed))
  assert run.workers.log_of('learner').endswith('learner/0:\nit learns\n')
