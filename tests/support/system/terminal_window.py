"""Runs the command `repertory` in a terminal window that can be closed."""

import os
import select
import subprocess
import sys
import threading

_CODE = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # It is the terminal of this session.
from repertory.launch.cli import entry_point
entry_point.main()
"""


class Terminal:
  """A command in a terminal window."""

  def __init__(self, directory, *arguments):
    self._ours, theirs = os.openpty()
    self._output = b''
    self._process = subprocess.Popen(
      [sys.executable, '-c', _CODE, *arguments],
      cwd=directory,
      stdin=theirs,
      stdout=theirs,
      stderr=theirs,
      start_new_session=True,
      env={**os.environ, 'TERM': 'xterm'},
    )
    os.close(theirs)
    self._reader = threading.Thread(target=self._read, daemon=True)
    self._closing = threading.Event()
    self._reader.start()

  def _read(self):
    while not self._closing.is_set():
      if select.select([self._ours], [], [], 0.1)[0]:
        self._output += os.read(self._ours, 1 << 16)

  @property
  def pid(self):
    return self._process.pid

  def is_running(self):
    return self._process.poll() is None

  def output(self):
    return self._output.decode(errors='replace')

  def close_window(self):
    self._closing.set()
    self._reader.join()
    os.close(self._ours)

  def wait(self, seconds):
    return self._process.wait(seconds)

  def kill(self):
    self._process.kill()
    self._process.wait()
