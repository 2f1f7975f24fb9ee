"""Tests of transient progress notes."""

import contextlib
import io

import pytest

from repertory.launch.platform import terminal


class _Terminal(io.StringIO):
  def isatty(self):
    return True


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
  monkeypatch.setenv('TERM', 'xterm')


def test_line_takes_its_place():
  with (
    contextlib.redirect_stderr(_Terminal()) as stream,
    terminal.saying('trying'),
  ):
    terminal.print_line('this stays')
  assert (
    stream.getvalue() == 'trying ...\r\x1b[Krepertory: this stays\n\r\x1b[K'
  )


@pytest.mark.parametrize('is_terminal', [True, False])
def test_nothing_is_said_where_it_would_stay(monkeypatch, is_terminal):
  if is_terminal:
    monkeypatch.setenv('TERM', 'dumb')
  stream = _Terminal() if is_terminal else io.StringIO()
  with contextlib.redirect_stderr(stream), terminal.saying('importing'):
    terminal.print_line('this stays')
  assert stream.getvalue() == 'repertory: this stays\n'


class _Gone(_Terminal):
  def write(self, text):
    raise BrokenPipeError


def test_terminal_that_has_gone_is_no_error():
  with contextlib.redirect_stderr(_Gone()), terminal.saying('importing'):
    terminal.print_line('nobody reads it')
