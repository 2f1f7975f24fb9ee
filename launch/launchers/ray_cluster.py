"""The connection to a Ray cluster."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

import ray
from ray._private import worker as ray_worker

from repertory.components.settings import SettingError
from repertory.launch.host import interrupts

# Nothing is handed over in Ray's memory but what nodes print.
_OBJECT_STORE_BYTES = 80 * 2**20

_END_SECONDS = 5.0
_CONNECT_SECONDS = 5.0

# Ray would give its workers, and so the nodes, the last turn of all processes.
_NICENESS = {'RAY_worker_niceness': '0'}


@contextlib.contextmanager
def connected(address: str) -> Iterator[None]:
  """Connects this process to a cluster while the block runs.

  One that is connected already stays as it is.

  Args:
    address: The cluster's, 'host:port' of its head; '' for one of this machine
      alone, which is started, and ended with the block.

  Raises:
    SettingError: If there is no cluster at the address.
  """
  if ray.is_initialized():
    yield
    return
  with contextlib.ExitStack() as stack:
    settings: dict[str, Any] = {'address': address}
    if not address:
      # Short, for the paths of sockets may have 107 characters.
      directory = tempfile.mkdtemp(prefix='ray-')
      stack.callback(shutil.rmtree, directory, ignore_errors=True)
      settings = {
        'address': 'local',
        'include_dashboard': False,
        'object_store_memory': _OBJECT_STORE_BYTES,
        '_temp_dir': directory,
      }
    handlers = interrupts.current_handlers()
    try:
      with interrupts.blocked(), _environment(_NICENESS):
        stack.callback(_shut_down)
        ray.init(configure_logging=False, log_to_driver=False, **settings)
    except ConnectionError as error:
      raise SettingError(
        'ray_address',
        f'must be where a Ray cluster is, got {address!r}: {error}',
      ) from error
    finally:
      interrupts.set_handlers(handlers)
    yield


def check(address: str) -> None:
  """Refuses an address where nobody listens; Ray would try for minutes.

  Args:
    address: See `connected`.

  Raises:
    SettingError: Saying what is wrong with it.
  """
  if not address:
    return
  host, colon, port = address.rpartition(':')
  try:
    if not (colon and port.isdigit()):
      raise ValueError('it has no port')
    place = host.strip('[]'), int(port)
    socket.create_connection(place, _CONNECT_SECONDS).close()
  except (OSError, ValueError) as error:
    raise SettingError(
      'ray_address',
      f"must be 'host:port' of the head of a Ray cluster, got {address!r}: "
      f'{error}. `ray start --head` tells it.',
    ) from error


def _shut_down() -> None:
  """Lets go of the cluster, and ends what of it this process has started."""
  node = ray_worker._global_node  # Ray offers no other way to its processes.
  started = [] if node is None else list(node.all_processes.values())
  ray.shutdown()
  for processes in started:
    for one in processes:
      with contextlib.suppress(subprocess.TimeoutExpired):
        one.process.wait(_END_SECONDS)  # It was killed, but not waited for.


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
  """Sets variables of the environment while the block runs."""
  before = {name: os.environ.get(name) for name in variables}
  os.environ.update(variables)
  try:
    yield
  finally:
    for name, value in before.items():
      if value is None:
        del os.environ[name]
      else:
        os.environ[name] = value
