"""Tests of child processes whose parent is killed."""

import subprocess
import sys

import pytest

_SECONDS = 60

# Gets many threads: when one dies, the next becomes the child's parent.
_PARENT = """
import signal, subprocess, sys, threading

def work():
  while True:
    sum(range(1000))

signal.signal(signal.SIGHUP, signal.SIG_IGN)  # As `nohup` does.
child = subprocess.Popen([sys.executable, '-c', sys.argv[1]])
input()
for _ in range(6):
  threading.Thread(target=work, daemon=True).start()
print('busy', flush=True)
child.wait()
"""
_CHILD = """
import os, time
from repertory.launch.platform import child_processes, interrupts

child_processes.stop_with(os.getppid())
with interrupts.catch_interrupts() as interruption:
  print('ready', flush=True)
  is_set = interruption.wait(30)
  time.sleep(0.5)  # As if it saved something.
  print('saved' if is_set else 'not asked', flush=True)
"""


_ELSEWHERE = """
import ctypes
ctypes.CDLL = lambda name: None  # Without `prctl`.
"""


@pytest.mark.parametrize('before', ['', _ELSEWHERE], ids=['Linux', 'elsewhere'])
def test_it_is_asked_to_stop_once(before):
  """Linux's kernel sends the signal whenever a thread of the parent dies."""
  parent = subprocess.Popen(
    [sys.executable, '-c', _PARENT, before + _CHILD],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
  )
  with parent:
    assert parent.stdin and parent.stdout
    try:
      assert parent.stdout.readline() == 'ready\n'
      parent.stdin.write('\n')
      parent.stdin.flush()
      assert parent.stdout.readline() == 'busy\n'
    finally:
      parent.kill()
    assert parent.stdout.readline() == 'saved\n'
