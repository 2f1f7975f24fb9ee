"""Runs a command on the first of two hosts that are a Ray cluster.

A program that must be run with an empty network namespace of its own. It makes
a second one, at the end of a virtual cable and with temporary files of its own.
`{address}` in the command becomes where the cluster is. It ends with the exit
code of the command, and prints the names of processes that are left.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import psutil

import namespaces

HERE, THERE = '10.78.0.1', '10.78.0.2'
_ADDRESS = f'{HERE}:6379'
_RAY = [sys.executable, '-m', 'ray.scripts.scripts', 'start']
_SETTINGS = [
  '--disable-usage-stats', '--num-cpus=2', '--object-store-memory=80000000',
]  # fmt: skip
_WAIT_FOR_BOTH = f"""
import ray, time
ray.init(address='{_ADDRESS}', log_to_driver=False)
deadline = time.monotonic() + 60
while sum(node['Alive'] for node in ray.nodes()) < 2:
  assert time.monotonic() < deadline, 'The second host did not come.'
  time.sleep(0.2)
"""
_SECOND = """
mount -t tmpfs none /tmp && mount -t tmpfs none /dev/shm || exit 1
read line  # Until there is a network.
exec "$@"
"""


@contextlib.contextmanager
def _second_host() -> Iterator[None]:
  command = [*_RAY, '--block', f'--address={_ADDRESS}']
  command += [f'--node-ip-address={THERE}', *_SETTINGS]
  host = subprocess.Popen(
    ['unshare', '--net', '--mount', 'sh', '-c', _SECOND, 'sh', *command],
    stdin=subprocess.PIPE,
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
  )
  try:
    namespaces.connect(host.pid, HERE, THERE)
    with _first_host():
      assert host.stdin is not None
      host.stdin.write(b'\n')
      host.stdin.flush()
      yield
  finally:
    _kill_all()
    host.wait(10)


@contextlib.contextmanager
def _first_host() -> Iterator[None]:
  with tempfile.TemporaryDirectory(
    prefix='ray-', ignore_cleanup_errors=True
  ) as directory:
    command = [*_RAY, '--head', f'--node-ip-address={HERE}', '--port=6379']
    command += ['--include-dashboard=false', f'--temp-dir={directory}']
    subprocess.run(
      [*command, *_SETTINGS], check=True, timeout=60, stdout=subprocess.DEVNULL
    )
    yield


def _kill_all() -> None:
  """Kills all processes of both hosts but this one."""
  for process in _others():
    with contextlib.suppress(psutil.NoSuchProcess):
      process.kill()


def _others() -> list[psutil.Process]:
  return psutil.Process().children(recursive=True)


def _is_of_run(process: psutil.Process) -> bool:
  with contextlib.suppress(psutil.Error):
    return 'REPERTORY_RUN' in process.environ()
  return False


def main() -> int:
  os.environ.update({'RAY_worker_niceness': '0'})
  with _second_host():
    waiting = [sys.executable, '-c', _WAIT_FOR_BOTH]
    subprocess.run(waiting, check=True, timeout=90)
    command = [part.replace('{address}', _ADDRESS) for part in sys.argv[1:]]
    code = subprocess.run(command, check=False, timeout=300).returncode
    time.sleep(2)
    left = [process.name() for process in _others() if _is_of_run(process)]
    print('left:', left)
  return code


if __name__ == '__main__':
  sys.exit(main())
