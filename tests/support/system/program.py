"""Runs programs in child processes, and finds processes they leave behind."""

import contextlib
import ctypes
import dataclasses
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator

import psutil

_MARK = 'REPERTORY_TEST_PROGRAM'
_LEAVE_SECONDS = 5

# Programs that were started and not waited for.
_running: set['Program'] = set()


def _die_with_parent() -> None:
  ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


@dataclasses.dataclass
class Ended:
  """Result of a program."""

  code: int
  output: str
  left: list[str]
  seconds: float


class Program:
  """A running program."""

  def __init__(
    self, arguments: list[str], cwd: str, python: str = sys.executable
  ):
    self._mark = uuid.uuid4().hex
    self._started_at = time.monotonic()
    self._output_path = os.path.join(cwd, f'output-{self._mark}.txt')
    with open(self._output_path, 'w') as output:
      self._process = subprocess.Popen(
        [python, *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=_die_with_parent,
        env={**os.environ, _MARK: self._mark, 'TF_CPP_MIN_LOG_LEVEL': '2'},
      )
    _running.add(self)

  @property
  def pid(self) -> int:
    return self._process.pid

  def is_running(self) -> bool:
    return self._process.poll() is None

  def processes(self) -> list[psutil.Process]:
    """Returns all processes that belong to the program, itself included."""
    found = []
    for process in psutil.process_iter():
      try:
        if process.environ().get(_MARK) == self._mark:
          found.append(process)
      except (psutil.NoSuchProcess, psutil.AccessDenied):
        continue
    return found

  def node(self, name: str) -> psutil.Process:
    """Returns the process of a node, found by its output file."""
    suffix = f'logs/nodes/{name if "/" in name else name + "/0"}'
    for process in self.processes():
      if os.readlink(f'/proc/{process.pid}/fd/1').endswith(suffix):
        return process
    raise LookupError(f'No process prints to {suffix}.')

  def interrupt(self, number: int = signal.SIGINT) -> None:
    """Sends a signal to the whole process group, as a terminal does."""
    self._started_at = time.monotonic()
    os.killpg(self._process.pid, number)

  def terminate(self) -> None:
    """Sends SIGTERM to the launcher only."""
    self._started_at = time.monotonic()
    self._process.terminate()

  def kill(self) -> None:
    """Sends SIGKILL to the launcher only."""
    self._process.kill()

  def wait(self, seconds: float) -> Ended:
    """Waits for the end, kills remaining processes, and fails on time-out."""
    _running.discard(self)
    try:
      code = self._process.wait(seconds)
    except subprocess.TimeoutExpired:
      for process in self.processes():
        process.kill()
      raise AssertionError(
        f'The program did not end in {seconds} seconds. Its output:\n'
        + self.output()
      ) from None
    took = time.monotonic() - self._started_at
    deadline = time.monotonic() + _LEAVE_SECONDS
    left = self.processes()
    while left and time.monotonic() < deadline:
      time.sleep(0.1)
      left = self.processes()
    lines = [' '.join(process.cmdline()) for process in left]
    for process in left:
      process.kill()
    return Ended(code, self.output(), lines, took)

  def output(self) -> str:
    with open(self._output_path) as file:
      return file.read()


def run(*command, cwd, seconds: float = 1500, **environment: str) -> str:
  """Runs a command, which must succeed; returns its output."""
  done = subprocess.run(
    list(map(str, command)),
    cwd=cwd,
    env={**os.environ, **environment},
    timeout=seconds,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )
  assert done.returncode == 0, done.stdout[-4000:]
  return done.stdout


def repertory(*arguments: str, cwd, python: str = sys.executable) -> Program:
  """Starts `repertory` with the given arguments, as the console script does.

  So the current folder is not in the import path.
  """
  code = (
    'import sys; del sys.path[0]; '
    'from repertory.launch.cli import entry_point; entry_point.main()'
  )
  return Program(['-c', code, *arguments], str(cwd), python)


def training(directory, max_steps: int, *flags: str, cwd) -> Program:
  """Starts training with checkpoints as frequent as possible."""
  return repertory(
    'train',
    '--agent=dqn',
    '--env=catch',
    f'--steps={max_steps}',
    '--evaluation_episodes=0',
    '--checkpoint_period_seconds=0.2',
    f'--directory={directory}',
    *flags,
    cwd=cwd,
  )


def kill_all_of(running: Program) -> None:
  """Kills all processes of a program, like the loss of a host."""
  for process in running.processes():
    process.send_signal(signal.SIGKILL)
  running.wait(10)


@contextlib.contextmanager
def none_left() -> Iterator[None]:
  """Kills programs started in the block and not waited for."""
  before = set(_running)
  yield
  for running in _running - before:
    kill_all_of(running)


def wait_until(condition, seconds: float, what: str) -> None:
  """Waits for a condition, and fails on time-out."""
  deadline = time.monotonic() + seconds
  while not condition():
    if time.monotonic() > deadline:
      raise AssertionError(f'Waited {seconds} seconds for {what}.')
    time.sleep(0.1)


def wait_for_learning(running: Program, directory, seconds: float) -> None:
  """Waits until the learner of a run has logged a step."""
  rows = directory / 'logs' / 'learner.csv'

  def learns():
    assert running.is_running(), running.output()
    return rows.exists() and rows.read_text().count('\n') > 1

  wait_until(learns, seconds, 'the learner to learn')
