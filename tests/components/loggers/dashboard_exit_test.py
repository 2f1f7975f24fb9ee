"""Tests of Dashboard at the exit of its process, on a real terminal."""

import os
import re
import subprocess
import sys
import time

import dashboard_fakes

_FORGETFUL = """
import sys
from repertory.components import loggers
dashboard = loggers.Dashboard(period_seconds=60)
dashboard.update(loggers.Status(title='run', episodes=1))
dashboard.update(loggers.Status(title='run', episodes=777))
print('last words')
raise SystemExit(3)
"""


def _run_on_terminal(code, seconds):
  """Runs Python on its own terminal; returns its output and exit status."""
  ours, theirs = os.openpty()
  try:
    process = subprocess.Popen(
      [sys.executable, '-c', code],
      stdin=theirs,
      stdout=theirs,
      stderr=subprocess.DEVNULL,
      env={**os.environ, 'TERM': 'xterm', 'COLUMNS': '80', 'LINES': '40'},
    )
  finally:
    os.close(theirs)
  sent = b''
  os.set_blocking(ours, False)
  deadline = time.monotonic() + seconds
  try:
    while time.monotonic() < deadline:
      try:
        piece = os.read(ours, 65536)
      except BlockingIOError:
        time.sleep(0.01)
        continue
      except OSError:  # The other end is closed.
        break
      sent += piece
    return sent.decode(), process.wait(timeout=seconds)
  finally:
    process.kill()
    process.wait(timeout=seconds)
    os.close(ours)


def test_forgotten_display_is_closed_at_exit():
  sent, exit_code = _run_on_terminal(_FORGETFUL, seconds=60)
  assert exit_code == 3
  screen = dashboard_fakes.Screen(sent)
  assert screen.cursor_visible
  assert screen.rows[0] == 'last words'
  assert screen.text.count('╭') == 1
  assert re.search('episodes +777', screen.text)
