"""Tests of workers in processes, with idle processes."""

import contextlib
import os
import subprocess
import sys
import uuid

import psutil
import pytest

from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.launchers import local_nodes, node_process
from repertory.launch.platform import child_processes
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


class _Run:
  """The processes of a run, marked by an environment variable."""

  def __init__(self, directory):
    self._directory = directory
    self._mark = uuid.uuid4().hex
    self._started = []

  def start(self, code: str) -> subprocess.Popen:
    started = subprocess.Popen(
      [sys.executable, '-c', code],
      env={**os.environ, child_processes.RUN_VARIABLE: self._mark},
    )
    self._started.append(started)
    return started

  def workers(self, **nodes: subprocess.Popen) -> local_nodes.LocalProcesses:
    """Takes nodes by their name, with '_' for '/'."""
    planned = launcher_lib.NodeGraph(60.0)
    for key in nodes:
      name = key.replace('_', '/')
      planned.add(launcher_lib.PlannedNode(name, lambda context: None))
    workers = local_nodes.LocalProcesses(planned, {}, str(self._directory))
    workers.run = self._mark
    workers.processes.update(zip(planned.names, nodes.values()))
    for plan in planned:
      workers._specs[plan.name] = node_process.NodeLaunchSpec(
        plan, {}, planned.rpc, None
      )
    return workers

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
    while living := self.living():
      for pid in living:
        with contextlib.suppress(psutil.NoSuchProcess):
          psutil.Process(pid).kill()
    for started in self._started:
      started.wait(30)


@pytest.fixture(name='run')
def _run(tmp_path):
  run = _Run(tmp_path)
  yield run
  run.end()


def _kill(process: subprocess.Popen) -> None:
  """Kills a process, but not its children."""
  process.kill()
  process.wait(30)


def test_restart_kills_what_the_node_left_and_nothing_else(
  run, tmp_path, monkeypatch
):
  monkeypatch.setattr(child_processes, '_RUN_NODE', _GRANDPARENT)
  other = _Run(tmp_path)
  try:
    other_ids = {other.start(_SLEEP).pid}
    learner, healthy = run.start(_SLEEP), run.start(_GRANDPARENT)
    spared = run.wait_for(4)
    ended = run.start(_GRANDPARENT)
    workers = run.workers(learner=learner, actor_0=healthy, actor_1=ended)
    strays = run.wait_for(7) - spared - {ended.pid}
    _kill(ended)
    assert run.living() == spared | strays

    workers.restart('actor/1')
    # The new process and its child.
    program.wait_until(
      lambda: len(run.living() - spared - strays) == 3, 30, 'the new process'
    )
    program.wait_until(lambda: not run.living() & strays, 30, 'their end')
    assert run.living() >= spared
    assert workers.find_ended() == []
    assert other.wait_for(1) == other_ids
    workers.kill('actor/1')
  finally:
    other.end()


def test_what_xla_prints_in_any_case_is_left_out(run, tmp_path):
  printed = (
    'WARNING: All log messages before absl::InitializeLog() is called are '
    'written to STDERR',
    'I0000 00:00:1764.8 99 device_compiler.h:186] Compiled cluster using XLA!  '
    'This line is logged at most once for the lifetime of the process.',
    'it learns',
    '2026-11-27 01:40:27.8: E external/local_xla/xla/stream_executor/stream_'
    'executor_internal.h:177] SetPriority unimplemented for this stream.',
  )
  workers = run.workers(learner=run.start(_SLEEP))
  (tmp_path / 'learner').mkdir()
  (tmp_path / 'learner/0').write_text('\n'.join(printed))
  assert workers.log_of('learner').endswith('learner/0:\nit learns\n')
