"""Tests that training needs nothing that only Linux has."""

import os
import subprocess
import sys

import pytest

from repertory.launch.launchers import rpc

# Removes, before other imports, names of modules that other systems lack; the
# names are those that Python documents as available on Linux only.
_WITHOUT_LINUX = r"""
import os, re, select, signal, socket, sys

LINUX = {
  os: 'memfd_|MFD_|sched_|SCHED_|pidfd_|P_PIDFD|eventfd|EFD_|timerfd_|TFD_|'
    'splice|SPLICE_|copy_file_range|getrandom|GRND_|posix_fa|POSIX_FADV_|setns|'
    'unshare|CLONE_|[a-z]+xattr|XATTR_|[gs]etres|pipe2|O_DIRECT|O_PATH|O_NOATIME|'
    'O_TMPFILE|RWF_|fdatasync',
  select: 'epoll|EPOLL|POLLRDHUP',
  signal: 'SIGRT|SIGCLD|SIGPOLL|SIGPWR|SIGSTKFLT|sigtimedwait|sigwaitinfo|'
    'pidfd_',
  socket: 'SO_PEERCRED|SO_PASSCRED|SO_BINDTODEVICE|SO_MARK|SOCK_CLOEXEC|'
    'SOCK_NONBLOCK|TCP_KEEPIDLE|TCP_USER_TIMEOUT|TCP_QUICKACK|TCP_CORK|'
    'AF_NETLINK|AF_VSOCK|AF_ALG',
}
for module, names in LINUX.items():
  for name in filter(re.compile(names).match, dir(module)):
    delattr(module, name)
"""
_RUN = """
from repertory.launch.cli import entry_point
entry_point.main()
"""
_FILE = """
from repertory.launch.platform import child_processes
with child_processes.memory_file() as file:
  file.write(b'spec')
  file.seek(0)
  assert file.read() == b'spec'
"""


@pytest.mark.parametrize(
  'flags',
  [
    '--topology=single',
    '--topology=distributed --lp_launch_type=local_mt --replay=server',
  ],
)
def test_training_needs_nothing_of_linux(flags, tmp_path):
  ended = subprocess.run(
    [
      *(sys.executable, '-c', _WITHOUT_LINUX + _FILE + _RUN),
      *('train', '--agent=dqn', '--env=catch', *flags.split()),
      *('--steps=300', '--evaluation_episodes=0', '--directory=run'),
    ],
    cwd=tmp_path,
    env={**os.environ, rpc.VARIABLE: rpc.GRPC},
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    timeout=300,
  )
  assert ended.returncode == 0, ended.stdout
  assert os.listdir(tmp_path / 'run' / 'checkpoints')
