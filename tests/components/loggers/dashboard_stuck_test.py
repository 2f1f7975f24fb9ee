"""Tests of Dashboard with a blocked or lost terminal."""

import contextlib
import io
import itertools
import os
import sys
import threading

import dashboard_fakes
import pytest
import rich.console

from repertory.components import loggers
from repertory.components.loggers import dashboard_thread


@pytest.fixture(name='clock')
def _clock():
  return dashboard_fakes.Clock()


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
  dashboard_fakes.set_terminal(monkeypatch)
  yield
  dashboard_fakes.wait_until(lambda: not dashboard_fakes.drawing_threads())


class _Gated(io.StringIO):
  """Blocks while its gate is closed."""

  def __init__(self):
    super().__init__()
    self.gate = threading.Event()
    self.is_waiting = threading.Event()

  def write(self, text):
    if not self.gate.is_set():
      self.is_waiting.set()
      assert self.gate.wait(30)
    return super().write(text)


def _make_gated(clock, **kwargs):
  file = _Gated()
  console = rich.console.Console(file=file, width=80, height=40, **kwargs)
  return file, loggers.Dashboard(console, close_seconds=30, clock=clock)


def _update(dashboard, clock, count):
  for _ in range(count):
    clock.now += 100
    now = round(clock.now)
    dashboard.update(dashboard_fakes.change(episodes=now, steps=now))


def _fill(writer):
  """Writes until the stream blocks."""
  os.set_blocking(writer, False)
  with contextlib.suppress(BlockingIOError):
    while True:
      os.write(writer, b'.' * 1000)
  os.set_blocking(writer, True)


def test_the_newest_is_drawn_when_the_terminal_resumes(clock):
  file, dashboard = _make_gated(clock)
  with dashboard:
    _update(dashboard, clock, 1)
    assert file.is_waiting.wait(30)
    _update(dashboard, clock, 1000)
    file.gate.set()
    dashboard_fakes.wait_until(
      lambda: len(dashboard_fakes.find_numbers(file.getvalue())) == 2
    )
    _update(dashboard, clock, 1)
  assert dashboard_fakes.find_numbers(file.getvalue())[:2] == [100, 100_100]
  assert dashboard_fakes.find_numbers(file.getvalue())[-1] == 100_200


def test_close_waits_for_a_terminal_that_resumes(clock):
  file, dashboard = _make_gated(clock)
  _update(dashboard, clock, 1)
  assert file.is_waiting.wait(30)
  _update(dashboard, clock, 1)
  timer = threading.Timer(0.1, file.gate.set)
  timer.start()
  dashboard.close()
  timer.join()
  assert dashboard_fakes.find_numbers(file.getvalue()) == [100, 200]


def test_prints_of_others_do_not_wait_and_are_kept(clock, monkeypatch):
  monkeypatch.setattr(dashboard_thread, '_MAX_TEXTS', 10)
  file, dashboard = _make_gated(clock, force_terminal=True)
  with dashboard:
    _update(dashboard, clock, 1)
    assert file.is_waiting.wait(30)
    for i in range(25):
      print('line', i)
    file.gate.set()
  screen = dashboard_fakes.Screen(file.getvalue())
  assert '15 prints are left out' in screen.rows[0]
  assert screen.rows[1:11] == [f'line {i}' for i in range(15, 25)]


@pytest.mark.parametrize('is_terminal', [False, True])
def test_a_terminal_that_is_not_read(clock, is_terminal):
  reader, writer = os.openpty() if is_terminal else os.pipe()
  _fill(writer)
  streams = sys.stdout, sys.stderr
  with os.fdopen(writer, 'w') as stdout, contextlib.redirect_stdout(stdout):
    dashboard = loggers.Dashboard(close_seconds=0.1, clock=clock)
    for _ in range(3):
      _update(dashboard, clock, 1)
      if is_terminal:
        print('above the panel', flush=True)
    dashboard.close()
    assert sys.stdout is stdout
    assert len(dashboard_fakes.drawing_threads()) == 1
    # When it is read, the thread ends.
    os.set_blocking(reader, False)

    def is_read():
      with contextlib.suppress(BlockingIOError):
        os.read(reader, 65536)
      return not dashboard_fakes.drawing_threads()

    dashboard_fakes.wait_until(is_read)
  os.close(reader)
  assert (sys.stdout, sys.stderr) == streams


@pytest.mark.parametrize('is_terminal', [False, True])
def test_continues_when_the_reader_has_gone(clock, is_terminal, caplog):
  reader, writer = os.openpty() if is_terminal else os.pipe()
  with os.fdopen(writer, 'w') as stdout, contextlib.redirect_stdout(stdout):
    with loggers.Dashboard(clock=clock) as dashboard:
      _update(dashboard, clock, 1)
      os.close(reader)
      _update(dashboard, clock, 2)
    print('What others print is lost, too.', flush=True)
  assert not caplog.records


def test_a_full_disk_ends_the_display_alone(clock, caplog):
  with (
    open('/dev/full', 'w') as stdout,
    contextlib.redirect_stdout(stdout),
    loggers.Dashboard(clock=clock) as dashboard,
  ):
    _update(dashboard, clock, 2)
  assert 'No space left' in caplog.text


def test_lines_and_prints_of_others_are_in_order(clock, tmp_path):
  path = tmp_path / 'output.txt'
  with open(path, 'w') as stdout, contextlib.redirect_stdout(stdout):
    print('before')
    with loggers.Dashboard(clock=clock) as dashboard:
      _update(dashboard, clock, 1)
      dashboard_fakes.wait_until(lambda: '100 of' in path.read_text())
      print('meanwhile')
      _update(dashboard, clock, 1)
    assert not stdout.line_buffering
    print('after')
  words = [line.split(' ')[0] for line in path.read_text().splitlines()]
  # There may be two lines at the end.
  words = [word for word, _ in itertools.groupby(words)]
  assert words == ['before', 'dqn', 'meanwhile', '200', 'after']


def test_a_process_that_is_forked_prints_by_itself(clock, tmp_path):
  path = tmp_path / 'output.txt'
  with open(path, 'w') as stdout, contextlib.redirect_stdout(stdout):
    file, dashboard = _make_gated(clock, force_terminal=True)
    with dashboard:
      _update(dashboard, clock, 1)
      assert file.is_waiting.wait(30)
      child = os.fork()
      if not child:
        print('of the child', flush=True)
        os._exit(0)
      os.waitpid(child, 0)
      file.gate.set()
  assert path.read_text() == 'of the child\n'


def test_a_terminal_is_left_to_others_unless_it_is_live(clock):
  """As with the prompt of a debugger, which ends no line."""
  reader, writer = os.openpty()
  with os.fdopen(writer, 'w') as stdout, contextlib.redirect_stdout(stdout):
    with loggers.Dashboard(is_live=False, clock=clock) as dashboard:
      _update(dashboard, clock, 1)
      assert sys.stdout is stdout
      print('(Pdb) ', end='', flush=True)
    os.set_blocking(reader, False)
    seen = os.read(reader, 65536).decode()
  os.close(reader)
  assert '(Pdb) ' in seen
  assert '100 of' in seen  # A line, and no panel.
  assert '\x1b[?25l' not in seen
