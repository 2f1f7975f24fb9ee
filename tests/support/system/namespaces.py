"""Network namespaces, to simulate several machines on one."""

import os
import shutil
import subprocess
import time
from collections.abc import Sequence

# Makes one that ends with the test, even without privileges.
WITHIN_ONE = (
  'unshare', '--map-root-user', '--net', '--mount', '--fork', '--kill-child',
)  # fmt: skip
# With its own process namespace, too, whose first process waits for all others.
ONE_HOST = (
  *WITHIN_ONE, '--pid', '--mount-proc', 'sh', '-c', '"$@" & wait $!', 'sh',
)  # fmt: skip


def can_be_made() -> bool:
  """Returns whether this machine supports them."""
  if not shutil.which('unshare') or not shutil.which('ip'):
    return False
  trial = [*WITHIN_ONE, 'ip', 'link', 'set', 'lo', 'up']
  return subprocess.run(trial, check=False, timeout=20).returncode == 0


def make_hub(name: str, *addresses: str) -> None:
  """Makes a hub that connects namespaces, with addresses of this one."""
  run(
    'ip link set lo up',
    f'ip link add name {name} type bridge',
    *(_give(address, name) for address in addresses),
    f'ip link set {name} up',
  )


def join(pid: int, hub: str, port: str, *addresses: str) -> str:
  """Connects another namespace to a hub, once it exists."""
  enter = _lay_cable(pid, port, addresses)
  run(f'ip link set {port} master {hub}', f'ip link set {port} up')
  return enter


def run(*commands: str) -> None:
  """Runs commands in order."""
  for command in commands:
    subprocess.run(command.split(), check=True, timeout=10)


def _give(address: str, interface: str) -> str:
  """Returns the command that assigns an address to an interface."""
  if ':' in address:
    return f'ip -6 addr add {address}/64 dev {interface} nodad'
  return f'ip addr add {address}/24 dev {interface}'


def _lay_cable(pid: int, end: str, addresses: Sequence[str]) -> str:
  namespace = f'/proc/{pid}/ns/net'
  deadline = time.monotonic() + 10
  while os.readlink(namespace) == os.readlink('/proc/self/ns/net'):
    assert time.monotonic() < deadline, 'unshare did not start.'
    time.sleep(0.01)
  enter = f'nsenter --net={namespace}'
  run(
    f'ip link add {end} type veth peer name there netns {pid}',
    f'{enter} ip link set lo up',
    *(f'{enter} {_give(address, "there")}' for address in addresses),
    f'{enter} ip link set there up',
  )
  return enter
