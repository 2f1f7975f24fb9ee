"""Simulates several hosts of a Ray cluster, and their failures.

This program must be run in its own namespaces, `namespaces.ONE_HOST`, which are
the first host. The other hosts have their own namespaces for the network,
processes, temporary files and shared memory, and are connected by one hub. Its
argument is JSON:

    hosts: Number of hosts.
    logs: Folder of the command's logs.
    command: Command to run on the first host; '{address}' becomes the cluster's
      address.
    events: Events during the command, in order; see `_Cluster`.

It prints JSON: the exit code and output of the command, the seconds after the
last event, and the processes left on the hosts.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import psutil

from support.system import namespaces

HERE = '10.78.0.1'
_HUB = 'hub'
_ADDRESS = f'{HERE}:6379'
_RAY = [sys.executable, '-m', 'ray.scripts.scripts', 'start']
_SETTINGS = [
  '--disable-usage-stats', '--num-cpus=4', '--object-store-memory=80000000',
]  # fmt: skip
_VARIABLES = {
  'RAY_worker_niceness': '0',
  # Shorter than the defaults, for tests.
  'RAY_health_check_initial_delay_ms': '2000',
  'RAY_health_check_period_ms': '1000',
  'RAY_health_check_timeout_ms': '4000',
  'RAY_health_check_failure_threshold': '4',
  # Ray 2.60 requires it; all hosts have the same.
  'RAY_AUTH_MODE': 'token',
  'RAY_AUTH_TOKEN': '0123456789abcdef' * 4,
}
_OTHER = """
mount -t tmpfs -o size=1g none /tmp && mount -t tmpfs none /dev/shm || exit 1
mount -t proc none /proc || exit 1
read line  # Until there is a network.
"$@" &
while :; do wait; sleep 1; done  # The first process must wait for all others.
"""
_WAIT_FOR_ALL = f"""
import ray, sys, time
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
ray.init(address='{_ADDRESS}', log_to_driver=False)
deadline = time.monotonic() + 90
def living():
  return [node['NodeID'] for node in ray.nodes() if node['Alive']]
while len(living()) < int(sys.argv[1]):
  assert time.monotonic() < deadline, 'Some hosts did not come.'
  time.sleep(0.2)
@ray.remote(num_cpus=0)
class Guest:
  def greet(self):
    pass
# Else the first nodes may be placed by who has not heard of all hosts yet.
for host in living():
  while True:
    try:
      guest = Guest.options(
        scheduling_strategy=NodeAffinitySchedulingStrategy(host, soft=False)
      ).remote()
      ray.get(guest.greet.remote(), timeout=60)
      break
    except ray.exceptions.RayError:
      assert time.monotonic() < deadline, 'A host takes no guests.'
      time.sleep(0.2)
"""
_SECONDS = 240.0


def address(host: int) -> str:
  """Returns the address of a host in the cluster; 0 is the first."""
  return f'10.78.0.{host + 1}'


def other_address(host: int) -> str:
  """Returns the address of a host in another network, of IPv6."""
  return f'fd78::{host + 1}'


class _Cluster:
  """The hosts, and events that can happen to them."""

  def __init__(self, num_hosts: int):
    self._inits: dict[int, subprocess.Popen] = {}
    self._num_hosts = num_hosts
    self.driver: subprocess.Popen | None = None
    self.output = self.logs = ''
    self._networks = {0: os.stat('/proc/self/ns/net').st_ino}

  @contextlib.contextmanager
  def running(self) -> Iterator[None]:
    """Starts all hosts, and stops them at the end of the block."""
    with tempfile.TemporaryDirectory(
      prefix='ray-', ignore_cleanup_errors=True
    ) as directory:
      try:
        namespaces.make_hub(_HUB, HERE, other_address(0))
        command = [*_RAY, '--head', f'--node-ip-address={HERE}', '--port=6379']
        command += ['--include-dashboard=false', f'--temp-dir={directory}']
        subprocess.run(
          [*command, *_SETTINGS],
          check=True,
          timeout=60,
          stdout=subprocess.DEVNULL,
        )
        for host in range(1, self._num_hosts):
          self._start(host)
        waiting = [sys.executable, '-c', _WAIT_FOR_ALL, str(self._num_hosts)]
        subprocess.run(waiting, check=True, timeout=120)
        yield
      finally:
        for process in list(self._processes()):
          with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
        for init in self._inits.values():
          init.wait(10)

  def _start(self, host: int) -> None:
    command = [*_RAY, '--block', f'--address={_ADDRESS}']
    command += [f'--node-ip-address={address(host)}', *_SETTINGS]
    init = subprocess.Popen(
      [
        'unshare', '--net', '--mount', '--pid', '--fork', '--kill-child',
        'sh', '-c', _OTHER, 'sh', *command,
      ],
      stdin=subprocess.PIPE,
      stdout=subprocess.DEVNULL,
      stderr=subprocess.DEVNULL,
    )  # fmt: skip
    self._inits[host] = init
    own = address(host), other_address(host)
    namespaces.join(init.pid, _HUB, f'port{host}', *own)
    self._networks[host] = os.stat(f'/proc/{init.pid}/ns/net').st_ino
    assert init.stdin is not None
    init.stdin.write(b'\n')
    init.stdin.flush()

  # Events.

  def wait_for_steps(self, steps: int) -> None:
    """Waits until a number of environment steps is logged."""
    self._wait(lambda: self._steps() >= steps, f'{steps} steps')

  def wait_for_output(self, text: str) -> None:
    """Waits until a text is printed."""
    self._wait(lambda: text in self._read(), repr(text))

  def wait_for_end(self) -> None:
    """Waits until the command has ended."""
    self._wait(lambda: False, 'the end')

  def sleep(self, seconds: float) -> None:
    time.sleep(seconds)

  def kill_node(self, name: str) -> None:
    """Kills the process of a node."""
    found = [p for p in self._processes() if p.name() == name[:15]]
    assert found, f'There is no process of {name}.'
    for process in found:
      process.kill()

  def kill_raylet(self, host: int) -> None:
    """Kills Ray's processes on a host."""
    for process in self._processes():
      with contextlib.suppress(OSError, psutil.Error):
        space = os.stat(f'/proc/{process.pid}/ns/net').st_ino
        if space == self._networks[host] and process.name() == 'raylet':
          process.kill()

  def kill_head(self) -> None:
    """Kills the head of the cluster."""
    for process in self._processes():
      if process.name().startswith('gcs_server'):
        process.kill()

  def kill_driver(self) -> None:
    """Kills the command."""
    assert self.driver is not None
    self.driver.kill()

  def cut(self, host: int) -> None:
    """Disconnects a host from the hub."""
    namespaces.run(f'ip link set port{host} down')

  def heal(self, host: int) -> None:
    """Connects a host to the hub again."""
    namespaces.run(f'ip link set port{host} up')

  def fill_disk(self, host: int) -> None:
    """Fills the disk of a host."""
    with (
      contextlib.suppress(OSError),
      open(self._root(host, 'fill'), 'wb') as f,
    ):
      while True:
        f.write(bytes(2**20))

  # Observations.

  def find_left(self) -> list[str]:
    """Returns processes and files that a run left on the hosts."""
    left = [' '.join(p.cmdline()[-2:]) for p in self._processes() if _is_of(p)]
    for host in self._inits:
      with contextlib.suppress(OSError):
        names = os.listdir(self._root(host))
        left += [n for n in names if n.startswith('repertory')]
    return left

  def _root(self, host: int, *names: str) -> str:
    # Only the child of unshare is in all of the namespaces.
    (child,) = psutil.Process(self._inits[host].pid).children()
    return os.path.join(f'/proc/{child.pid}/root/tmp', *names)

  def _processes(self) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
      with contextlib.suppress(psutil.Error):
        if process.pid not in (1, os.getpid()):
          process.cmdline()
          yield process

  def _read(self) -> str:
    with open(self.output, errors='replace') as file:
      return file.read()

  def _steps(self) -> int:
    try:
      with open(os.path.join(self.logs, 'replay.jsonl')) as file:
        lines = file.read().splitlines()
    except FileNotFoundError:
      return 0
    return json.loads(lines[-1])['steps'] if lines else 0

  def _wait(self, condition, what: str) -> None:
    assert self.driver is not None
    deadline = time.monotonic() + _SECONDS
    while not condition() and self.driver.poll() is None:
      assert time.monotonic() < deadline, f'Waited {_SECONDS:g} s for {what}.'
      time.sleep(0.1)


def _is_of(process: psutil.Process) -> bool:
  with contextlib.suppress(psutil.Error):
    return 'REPERTORY_RUN' in process.environ()
  return False


def main() -> None:
  scenario = json.loads(sys.argv[1])
  os.environ.update(_VARIABLES)
  cluster = _Cluster(scenario['hosts'])
  results: dict[str, Any] = {}
  with tempfile.NamedTemporaryFile('w') as output, cluster.running():
    command = [
      part.replace('{address}', _ADDRESS) for part in scenario['command']
    ]
    cluster.output = output.name
    cluster.logs = scenario['logs']
    cluster.driver = subprocess.Popen(
      command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
    )
    try:
      for event, *arguments in scenario['events']:
        getattr(cluster, event)(*arguments)
      since = time.monotonic()
      cluster.wait_for_end()
      results['seconds'] = time.monotonic() - since
    except AssertionError as error:
      results['error'] = str(error)
    results['code'] = cluster.driver.poll()
    time.sleep(3)
    results['left'] = cluster.find_left()
    with open(output.name, errors='replace') as file:
      results['output'] = file.read()
  print(json.dumps(results))


if __name__ == '__main__':
  main()
