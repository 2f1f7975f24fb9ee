"""Connection to a Ray cluster."""

import contextlib
import logging
import os
import re
import secrets
import shutil
import site
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ray
from ray import exceptions as ray_errors
from ray._private import ray_logging
from ray._private import worker as ray_worker

from repertory.components.config.settings import SettingError, text_of
from repertory.launch.platform import interrupts

# Ray's object store only transfers the output of nodes.
_OBJECT_STORE_BYTES = 80 * 2**20

# Sources of Ray's token, and whether Ray requires it.
_TOKEN, _TOKEN_PATH = 'RAY_AUTH_TOKEN', 'RAY_AUTH_TOKEN_PATH'
_TOKEN_MODE = 'RAY_AUTH_MODE'
_TOKEN_HINT = (
  f'. The cluster requires a token: set {_TOKEN_MODE}=token, and copy '
  f"~/.ray/auth_token, or {_TOKEN}, from the cluster's head. Or start the "
  f'cluster with {_TOKEN_MODE}=disabled on each host.'
)

# Seconds without a reply after which the head counts as lost, and after which
# queries might hang.
SILENCE_SECONDS = 10.0
LATE_SECONDS = 3.0

# Patterns of files that are not the user's code or secret, as in .gitignore.
_EXCLUDED = (
  '.?*', '__pycache__', '*.pyc', '/venv', '/runs', '/build', '/dist', '/logs',
  '/checkpoints',
)  # fmt: skip


@contextlib.contextmanager
def _monitored() -> Iterator[Callable[[], float]]:
  """Monitors the cluster's head while the block runs.

  Yields:
    A function that returns the seconds since the head's last reply.
  """
  replied_at, ended = time.monotonic(), threading.Event()
  # No public call of Ray has a time-out.
  client = getattr(ray_worker.global_worker, 'gcs_client')  # noqa: B009

  def monitor():
    nonlocal replied_at
    while not ended.wait(1.0):
      with contextlib.suppress(Exception):
        client.internal_kv_exists(b'repertory', None, LATE_SECONDS)
        replied_at = time.monotonic()

  thread = threading.Thread(target=monitor, daemon=True)
  thread.start()
  try:
    yield lambda: time.monotonic() - replied_at
  finally:
    ended.set()
    thread.join(LATE_SECONDS)


def living_hosts() -> list[Mapping[str, Any]]:
  """Returns Ray's descriptions of all hosts that are alive."""
  return [host for host in ray.nodes() if host['Alive']]


@contextlib.contextmanager
def connected(address: str) -> Iterator[Callable[[], float]]:
  """Connects this process to a cluster while the block runs; see `_monitored`.

  Ray copies the user's own modules to other hosts, see `code_folder`.
  """
  with contextlib.ExitStack() as stack:
    if address:
      code = _runtime_environment()
      settings: dict[str, Any] = {'address': address, 'runtime_env': code}
    else:
      # Short, since paths of sockets are limited to 107 characters.
      directory = tempfile.mkdtemp(prefix='ray-')
      stack.callback(shutil.rmtree, directory, ignore_errors=True)
      _ensure_token()
      settings = {
        'address': 'local',
        'include_dashboard': False,
        'object_store_memory': _OBJECT_STORE_BYTES,
        '_temp_dir': directory,
      }
    # By default, Ray gives its workers, and so the nodes, low CPU priority.
    os.environ.setdefault('RAY_worker_niceness', '0')
    stack.callback(_shut_down)
    with interrupts.restored(), _setting_errors(address):
      ray.init(configure_logging=False, log_to_driver=False, **settings)
    # Ray reports each killed process; supervision reports those that matter.
    ray_logging.stdout_deduplicator.skip_re = re.compile('')
    yield stack.enter_context(_monitored())


@contextlib.contextmanager
def _setting_errors(address: str) -> Iterator[None]:
  """Converts connection errors of Ray to `SettingError`."""
  try:
    yield
  except ConnectionError as error:
    problem = f'that of a Ray cluster, got {address!r}: {text_of(error)}'
    if 'InvalidAuthToken' in str(error.__cause__):
      problem += _TOKEN_HINT
    raise SettingError('ray_address', f'must be {problem}') from error
  except (ray_errors.RayError, RuntimeError, ValueError) as error:
    # Such as another version, a missing token file, or too large a folder.
    raise SettingError(
      'ray_address',
      'must be of a cluster that accepts this process and your code, '
      f'{code_folder()}: {text_of(error)}',
    ) from error


def check(address: str) -> None:
  """Checks that a server listens at an address; Ray would retry for minutes.

  Raises:
    SettingError: If no server listens, or this process is connected already.
  """
  if ray.is_initialized():
    raise SettingError(
      'launch_type',
      "must not be 'ray' in a process that is connected to Ray; call "
      '`ray.shutdown()` first.',
    )
  if not address:
    return
  host, colon, port = address.rpartition(':')
  try:
    if not (colon and port.isdigit()):
      raise ValueError('it has no port')
    server = host.strip('[]'), int(port)
    socket.create_connection(server, timeout=5.0).close()
  except (OSError, ValueError) as error:
    raise SettingError(
      'ray_address',
      f"must be 'host:port' of the head of a Ray cluster, got {address!r}: "
      f'{text_of(error)}. `ray start --head` prints it.',
    ) from error


def code_folder() -> str | None:
  """Returns the first import path that is not of installed packages."""
  installed = [sys.prefix, sys.base_prefix, site.getusersitepackages()]
  real = tuple(os.path.realpath(path) + os.sep for path in installed)
  for path in sys.path:
    found = os.path.realpath(path or os.getcwd())
    if os.path.isdir(found) and not (found + os.sep).startswith(real):
      return found
  return None


def _runtime_environment() -> dict[str, Any] | None:
  """Returns Ray's runtime environment with `code_folder`; None without one."""
  path = code_folder()
  if path is None:
    return None
  if path in (os.sep, os.path.realpath(os.path.expanduser('~'))):
    raise SettingError(
      'ray_address',
      'needs your code in its own folder, which is copied to all hosts; got '
      f'{path}.',
    )
  return {'working_dir': path, 'excludes': list(_EXCLUDED)}


def _ensure_token() -> None:
  """Sets a token for a cluster of this process, unless the user has set one.

  Ray 2.60 requires a token. It would write one to the home folder, which would
  make all later `ray start` require it, too. The token stays set after the end
  of the cluster, since Ray keeps the first token of a process.
  """
  if not any(one in os.environ for one in (_TOKEN, _TOKEN_PATH, _TOKEN_MODE)):
    os.environ[_TOKEN] = secrets.token_hex(32)
    # Ray would log the token, and how to disable it.
    logging.getLogger('ray._private.authentication').setLevel(logging.ERROR)


def _shut_down() -> None:
  """Disconnects from the cluster, and ends processes started by this one."""
  node = ray_worker._global_node  # There is no public accessor.
  started = [] if node is None else list(node.all_processes.values())
  ray.shutdown()
  for processes in started:
    for one in processes:
      with contextlib.suppress(subprocess.TimeoutExpired):
        one.process.wait(5.0)  # Ray kills without waiting.
