"""Tests of the display's thread: drawings, prints, and a lost terminal."""

import contextlib
import io
import itertools
import os
import re
import sys
import threading
import time

import pytest
import rich.console

from repertory.components import loggers
from repertory.components.loggers import live_display

_STYLE = re.compile(r'\x1b\[[0-9;]*m')
_MOVE = re.compile(r'\x1b\[[?0-9;]*[A-Za-z]|\r')


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
  monkeypatch.setenv('TERM', 'xterm-256color')
  for name in ('NO_COLOR', 'FORCE_COLOR', 'TTY_INTERACTIVE', 'COLUMNS'):
    monkeypatch.delenv(name, raising=False)
  for name in ('_PERIOD_SECONDS', '_LINE_SECONDS', '_FIRST_LINE_SECONDS'):
    monkeypatch.setattr(live_display, name, 0.02)
  yield
  _wait(lambda: not _threads())


class _Terminal(io.StringIO):
  """File that may block while its gate is closed."""

  def __init__(self, is_open=True):
    super().__init__()
    self.gate = threading.Event()
    self.is_waiting = threading.Event()
    if is_open:
      self.gate.set()

  def write(self, text):
    if not self.gate.is_set():
      self.is_waiting.set()
      assert self.gate.wait(30)
    return super().write(text)

  def text(self):
    """Returns what was written, with line breaks for moves of the cursor."""
    return _MOVE.sub('\n', _STYLE.sub('', self.getvalue()))


def _make(file, is_terminal=True):
  console = rich.console.Console(
    file=file, force_terminal=is_terminal, width=80, height=40
  )
  return loggers.Dashboard(console)


def _status(number, **changes):
  return loggers.Status('run', steps=number, episodes=number, **changes)


def _threads():
  return [one for one in threading.enumerate() if one.name == 'display']


def _wait(condition):
  deadline = time.monotonic() + 30
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.002)


def _fill(writer):
  """Writes until the stream blocks."""
  os.set_blocking(writer, False)
  with contextlib.suppress(BlockingIOError):
    while True:
      os.write(writer, b'.')
  os.set_blocking(writer, True)


def test_panel_is_drawn_in_place_below_prints():
  terminal = _Terminal()
  streams = sys.stdout, sys.stderr
  with pytest.raises(KeyError, match='broken'), _make(terminal) as dashboard:
    dashboard.update(_status(1))
    print('one')
    print('\x1b[1mtwo\x1b[0m', file=sys.stderr)
    print('[three]', end='', flush=True)
    sys.stdout.write('fo')
    sys.stdout.writelines(['ur\n', 'five'])
    _wait(lambda: '\nfour\n' in terminal.text())
    assert '\x1b[1A' in terminal.getvalue()  # Back to the panel's first line.
    dashboard.update(_status(777))
    raise KeyError('broken')
  assert (sys.stdout, sys.stderr) == streams
  printed = re.findall(r'(?m)^[\w\[\]]+$', terminal.text())
  assert printed == ['one', 'two', '[three]', 'four', 'five']
  assert re.search('episodes +777 ', terminal.text().split('five')[1])
  assert terminal.getvalue().rindex('?25h') > terminal.getvalue().rindex('?25l')


def test_time_advances_on_a_terminal_without_news():
  terminal = _Terminal()
  with _make(terminal) as dashboard:
    dashboard.update(_status(1, elapsed_seconds=75.0))
    _wait(lambda: '1 m 16 s' in terminal.getvalue())


def test_status_that_cannot_be_drawn_ends_the_display_alone(caplog, capsys):
  with _make(_Terminal()) as dashboard:
    dashboard.update(_status(1))
    dashboard.update(_status('many'))
    _wait(lambda: not _threads())
    dashboard.update(_status(2))
    print('continues')
  assert 'TypeError' in caplog.text
  assert capsys.readouterr().out == 'continues\n'


def test_blocked_terminal_blocks_nothing_else(monkeypatch):
  monkeypatch.setattr(live_display, '_MAX_PRINTS', 10)
  terminal = _Terminal(is_open=False)
  dashboard = _make(terminal)
  dashboard.update(_status(1))
  assert terminal.is_waiting.wait(30)
  for i in range(25):
    print('line', i)
    dashboard.update(_status(i))
  timer = threading.Timer(0.1, terminal.gate.set)
  timer.start()
  dashboard.close()
  timer.join()
  printed = re.findall(r'(?m)^line \d+$', terminal.text())
  assert printed == [f'line {i}' for i in range(10)]
  message = '(The terminal was too slow: 15 prints are left out.)'
  assert message in terminal.text()
  assert re.search('episodes +24 ', terminal.text())


@pytest.mark.parametrize('is_terminal', [False, True])
def test_a_terminal_that_is_not_read(is_terminal, monkeypatch):
  monkeypatch.setattr(live_display, '_CLOSE_SECONDS', 0.1)
  reader, writer = os.openpty() if is_terminal else os.pipe()
  _fill(writer)
  streams = sys.stdout, sys.stderr
  with os.fdopen(writer, 'w') as stdout, contextlib.redirect_stdout(stdout):
    with loggers.Dashboard() as dashboard:
      dashboard.update(_status(1))
      if is_terminal:
        print('above the panel', flush=True)
    assert sys.stdout is stdout
    assert len(_threads()) == 1
    # When it is read, the thread ends.
    os.set_blocking(reader, False)

    def is_read():
      with contextlib.suppress(BlockingIOError):
        os.read(reader, 65536)
      return not _threads()

    _wait(is_read)
  os.close(reader)
  assert (sys.stdout, sys.stderr) == streams


@pytest.mark.parametrize('is_terminal', [False, True])
def test_continues_when_the_reader_has_gone(is_terminal, caplog):
  reader, writer = os.openpty() if is_terminal else os.pipe()
  with os.fdopen(writer, 'w') as stdout, contextlib.redirect_stdout(stdout):
    with loggers.Dashboard() as dashboard:
      os.close(reader)
      dashboard.update(_status(1))
      _wait(lambda: not _threads())
    print('What others print is lost, too.', flush=True)
  assert not caplog.records


def test_nothing_is_lost_in_a_pipe_that_others_made_non_blocking():
  reader, writer = os.pipe()
  with os.fdopen(writer, 'w') as stdout, contextlib.redirect_stdout(stdout):
    _fill(writer)
    os.set_blocking(writer, False)
    dashboard = loggers.Dashboard()
    dashboard.update(_status(1))
    time.sleep(0.1)  # The thread writes to the full pipe.
    while b'1 steps' not in os.read(reader, 65536):
      pass
    dashboard.close()
  os.close(reader)


def test_a_full_disk_ends_the_display_alone(caplog):
  with (
    open('/dev/full', 'w') as stdout,
    contextlib.redirect_stdout(stdout),
    loggers.Dashboard() as dashboard,
  ):
    dashboard.update(_status(1))
  assert 'No space left' in caplog.text


def test_lines_and_prints_of_others_are_in_order(tmp_path):
  path = tmp_path / 'output.txt'
  with open(path, 'w') as stdout, contextlib.redirect_stdout(stdout):
    print('before')
    with loggers.Dashboard() as dashboard:
      dashboard.update(_status(1))
      _wait(lambda: '1 steps' in path.read_text())
      print('meanwhile')
      dashboard.update(_status(2))
    print('after')
  words = [line.split(' ')[0] for line in path.read_text().splitlines()]
  words = [word for word, _ in itertools.groupby(words)]
  assert words[:2] == ['before', 'run:']
  assert words[-2:] == ['2', 'after']
  assert 'meanwhile' in words


def test_a_process_that_is_forked_prints_by_itself(tmp_path):
  path = tmp_path / 'output.txt'
  with open(path, 'w') as stdout, contextlib.redirect_stdout(stdout):
    terminal = _Terminal(is_open=False)
    with _make(terminal) as dashboard:
      dashboard.update(_status(1))
      assert terminal.is_waiting.wait(30)
      child = os.fork()
      if not child:
        print('of the child', flush=True)
        os._exit(0)
      os.waitpid(child, 0)
      terminal.gate.set()
  assert path.read_text() == 'of the child\n'


def test_a_terminal_is_left_to_others_unless_it_is_live():
  """As with the prompt of a debugger, which ends no line."""
  reader, writer = os.openpty()
  with os.fdopen(writer, 'w') as stdout, contextlib.redirect_stdout(stdout):
    with loggers.Dashboard(is_live=False) as dashboard:
      dashboard.update(_status(1))
      assert sys.stdout is stdout
      print('(Pdb) ', end='', flush=True)
    seen = ''
    while 'after' not in seen:
      seen += os.read(reader, 65536).decode()
  os.close(reader)
  assert '(Pdb) ' in seen
  assert '1 steps' in seen  # A line, and no panel.
  assert '\x1b[?25l' not in seen
