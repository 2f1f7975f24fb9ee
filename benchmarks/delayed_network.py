"""Two hosts on one machine, connected by a network with simulated delay.

A host is a network namespace. Linux itself delays packets only if its kernel
has netem; here a program forwards them, IP packet by IP packet, between the two
ends, which are TUN devices. It must start in an empty network namespace of its
own, see `run_within`.
"""

import collections
import contextlib
import ctypes
import fcntl
import os
import select
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import figures

HERE, THERE = '10.79.0.1', '10.79.0.2'

_SET_INTERFACE = 0x400454CA  # TUNSETIFF of ioctl(2).
_TUN, _WITHOUT_HEADER = 0x0001, 0x1000
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET of setns(2).
_SET_TIMER_SLACK = 29  # PR_SET_TIMERSLACK of prctl(2).
_NANOSECONDS = 1000
_DEVICE = 'hub'
_MAX_PACKET = 1 << 16
_START_SECONDS = 20
_IDLE_SECONDS = 1.0
_PORT = 5001


def run_within(command: Sequence[str]) -> int:
  """Runs a command in its own network namespace; returns its exit code."""
  privileges = [] if os.geteuid() == 0 else ['--map-root-user']
  unshare = ['unshare', *privileges, '--net', '--fork', '--kill-child']
  return subprocess.run([*unshare, *command], check=False).returncode


class Network:
  """Connection to the other host.

  Attributes:
    prefix: Command prefix that runs a command on the other host.
  """

  def __init__(self, hub: Any):
    self._hub = hub
    self.prefix = ['nsenter', f'--net=/proc/{hub.pid}/ns/net']

  def delay(self, seconds: float) -> None:
    """Sets the delay of each packet, in both directions."""
    self._hub.stdin.write(f'{seconds}\n'.encode())
    self._hub.stdin.flush()

  def busy_seconds(self) -> float:
    """Returns the processor time spent forwarding packets."""
    return figures.processor_seconds(self._hub.pid)

  def measure_round_trips(self, number: int = 500) -> list[float]:
    """Returns the round-trip times of a byte over TCP, in seconds."""
    with socket.create_server((HERE, _PORT)) as listener:
      echo = subprocess.Popen(
        [*self.prefix, sys.executable, os.path.abspath(__file__), 'echo']
      )
      listener.settimeout(_START_SECONDS)
      stream, _ = listener.accept()
    with stream:
      _send_at_once(stream)
      seconds = []
      for _ in range(number):
        start = time.perf_counter()
        stream.send(b'.')
        stream.recv(1)
        seconds.append(time.perf_counter() - start)
    echo.wait(_START_SECONDS)
    return seconds


@contextlib.contextmanager
def connected() -> Iterator[Network]:
  """Creates the other host, and connects this one with it."""
  command = [sys.executable, os.path.abspath(__file__), str(os.getpid())]
  hub: Any = subprocess.Popen(
    ['unshare', '--net', *command],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
  )
  try:
    if hub.stdout.readline() != b'ready\n':
      raise RuntimeError('The network did not start.')
    yield Network(hub)
  finally:
    hub.kill()
    hub.wait()
    hub.stdin.close()
    hub.stdout.close()


def measure_precision(network: Network, delays: Sequence[float]) -> list[str]:
  """Measures the actual delay of packets.

  Args:
    delays: One-way delays in seconds.
  """
  said = []
  for delay in delays:
    network.delay(delay)
    time.sleep(0.1)
    times = sorted(network.measure_round_trips())
    middle, late = statistics.median(times), times[int(0.99 * len(times))]
    said.append(
      f'{1e3 * delay:g} ms each way: the round trip of a byte takes '
      f'{1e3 * middle:.2f} ms (median), 99th percentile '
      f'{1e3 * late:.2f} ms'
    )
  return said


def _send_at_once(stream: socket.socket) -> None:
  stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _open_device(address: str, peer: str) -> int:
  """Creates an end of the network in the namespace of this process."""
  device = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
  settings = struct.pack('16sH22x', _DEVICE.encode(), _TUN | _WITHOUT_HEADER)
  fcntl.ioctl(device, _SET_INTERFACE, settings)
  for command in (
    'ip link set lo up',
    f'ip addr add {address} peer {peer} dev {_DEVICE}',
    f'ip link set {_DEVICE} up',
  ):
    subprocess.run(command.split(), check=True)
  return device


def _enter(namespace: int) -> None:
  library = ctypes.CDLL(None, use_errno=True)
  if library.setns(namespace, _NEW_NETWORK):
    raise OSError(ctypes.get_errno(), 'setns')


def _hurry() -> None:
  """Reduces the wake-up latency of this process, also on a busy machine."""
  ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, _NANOSECONDS, 0, 0, 0)
  with contextlib.suppress(PermissionError):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def _carry(devices: Sequence[int], delay: list[float]) -> None:
  """Forwards packets between two ends, forever.

  Args:
    delay: List with a single entry, the current delay in seconds.
  """
  other = {devices[0]: devices[1], devices[1]: devices[0]}
  under_way = collections.deque()
  while True:
    wait = _IDLE_SECONDS
    if under_way:
      wait = max(0.0, under_way[0][0] - time.perf_counter())
    for device in select.select(devices, [], [], wait)[0]:
      with contextlib.suppress(BlockingIOError):
        while True:
          packet = os.read(device, _MAX_PACKET)
          due = time.perf_counter() + delay[0]
          under_way.append((due, other[device], packet))
    while under_way and under_way[0][0] <= time.perf_counter():
      _, device, packet = under_way.popleft()
      with contextlib.suppress(OSError):  # A full device drops the packet.
        os.write(device, packet)


def _be_hub(pid: int) -> None:
  """Runs the network between the namespaces of a process and of this one."""
  there = os.open('/proc/self/ns/net', os.O_RDONLY)
  here = os.open(f'/proc/{pid}/ns/net', os.O_RDONLY)
  devices = [_open_device(THERE, HERE)]
  _enter(here)
  devices.append(_open_device(HERE, THERE))
  _enter(there)
  _hurry()
  delay = [0.0]
  threading.Thread(target=_carry, args=(devices, delay), daemon=True).start()
  print('ready', flush=True)
  for line in sys.stdin:
    delay[0] = float(line)


def _echo() -> None:
  with socket.create_connection((HERE, _PORT)) as stream:
    _send_at_once(stream)
    while data := stream.recv(1):
      stream.send(data)


if __name__ == '__main__':
  if sys.argv[1] == 'echo':
    _echo()
  else:
    _be_hub(int(sys.argv[1]))
