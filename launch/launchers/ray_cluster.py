"""The connection to a Ray cluster."""

import contextlib
import logging
import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import ray
from ray import exceptions as ray_errors
from ray._private import ray_logging
from ray._private import worker as ray_worker

from repertory.components.settings import SettingError, text_of
from repertory.launch.host import interrupts
from repertory.launch.launchers import user_code

# Nothing is handed over in Ray's memory but what nodes print.
_OBJECT_STORE_BYTES = 80 * 2**20

_END_SECONDS = 5.0
_CONNECT_SECONDS = 5.0

# Ray would give its workers, and so the nodes, the last turn of all processes.
_NICENESS = {'RAY_worker_niceness': '0'}

# Where Ray has its token from, and whether it asks others for it.
_TOKEN, _TOKEN_PATH = 'RAY_AUTH_TOKEN', 'RAY_AUTH_TOKEN_PATH'
_TOKEN_MODE = 'RAY_AUTH_MODE'
_TOKEN_ASKED_FOR = (
  f'. The cluster asks for a token: set {_TOKEN_MODE}=token, and have in '
  f'~/.ray/auth_token, or in {_TOKEN}, what its head has there. Or start it '
  f'with {_TOKEN_MODE}=disabled on each host.'
)

# After so long without an answer, the head is taken for lost.
SILENCE_SECONDS = 10.0
_BEAT_SECONDS = 1.0
_BEAT_TIMEOUT_SECONDS = 3.0


class Heart:
  """Knows whether the head of the cluster answers.

  Attributes:
    is_late: Whether it has not the last time it was asked.
    is_silent: Whether it has not for `SILENCE_SECONDS`.
  """

  def __init__(self):
    self.is_late = self.is_silent = False
    self._stopped = threading.Event()
    self._thread = threading.Thread(target=self._listen, daemon=True)

  def __enter__(self) -> 'Heart':
    self._thread.start()
    return self

  def __exit__(self, *error) -> None:
    self._stopped.set()
    self._thread.join(_BEAT_TIMEOUT_SECONDS)

  def _listen(self) -> None:
    heard_at = time.monotonic()
    # Ray offers no other call with a time-out of its own.
    client = getattr(ray_worker.global_worker, 'gcs_client')  # noqa: B009
    while not self._stopped.wait(_BEAT_SECONDS):
      try:
        client.internal_kv_exists(b'repertory', None, _BEAT_TIMEOUT_SECONDS)
      except Exception:
        self.is_late = True
        self.is_silent = time.monotonic() - heard_at > SILENCE_SECONDS
      else:
        heard_at, self.is_late, self.is_silent = time.monotonic(), False, False


class Host(NamedTuple):
  """A host of the cluster.

  Attributes:
    name: Ray's.
    address: In the cluster.
    resources: As Ray was told.
  """

  name: str
  address: str
  resources: Mapping[str, float]


def living_hosts() -> list[Host]:
  """Returns all hosts that live."""
  return [
    Host(host['NodeID'], host['NodeManagerAddress'], host['Resources'])
    for host in ray.nodes()
    if host['Alive']
  ]


def address_told(error: str) -> str:
  """Returns the address of the host that an error of Ray's is of, or ''.

  Args:
    error: Its text.
  """
  found = re.search(r'\bip: ([0-9a-fA-F.:]*[0-9a-fA-F])', error)
  return found[1] if found else ''


@contextlib.contextmanager
def connected(address: str) -> Iterator[Heart]:
  """Connects this process to a cluster while the block runs.

  One that is connected already stays as it is. To other hosts Ray copies the
  user's own modules, see `user_code`.

  Args:
    address: The cluster's, 'host:port' of its head; '' for one of this machine
      alone, which is started, and ended with the block.

  Raises:
    SettingError: If there is no cluster at the address.
  """
  if ray.is_initialized():
    there = ray.get_runtime_context().gcs_address
    if address not in ('', there):
      raise SettingError(
        'ray_address',
        f'must be that of the cluster that this process is connected to, '
        f'{there}, or left out; got {address!r}.',
      )
    with Heart() as heart:
      yield heart
    return
  with contextlib.ExitStack() as stack:
    if address:
      code = user_code.runtime_environment()
      settings: dict[str, Any] = {'address': address, 'runtime_env': code}
    else:
      # Short, for the paths of sockets may have 107 characters.
      directory = tempfile.mkdtemp(prefix='ray-')
      stack.callback(shutil.rmtree, directory, ignore_errors=True)
      _have_own_token()
      settings = {
        'address': 'local',
        'include_dashboard': False,
        'object_store_memory': _OBJECT_STORE_BYTES,
        '_temp_dir': directory,
      }
    handlers = interrupts.current_handlers()
    try:
      with _told(address), interrupts.blocked(), _environment(_NICENESS):
        stack.callback(_shut_down)
        ray.init(configure_logging=False, log_to_driver=False, **settings)
    finally:
      interrupts.set_handlers(handlers)
    # Ray prints of each process that was killed; we tell of those that matter.
    ray_logging.stdout_deduplicator.skip_re = re.compile('')
    yield stack.enter_context(Heart())


@contextlib.contextmanager
def _told(address: str) -> Iterator[None]:
  """Tells users what keeps Ray from connecting to an address."""
  try:
    yield
  except ConnectionError as error:
    problem = f'where a Ray cluster is, got {address!r}: {text_of(error)}'
    if 'InvalidAuthToken' in str(error.__cause__):
      problem += _TOKEN_ASKED_FOR
    raise SettingError('ray_address', f'must be {problem}') from error
  except ray_errors.RuntimeEnvSetupError as error:
    raise SettingError(
      'ray_address',
      'must be of a cluster that takes the folder of your code, '
      f'{user_code.folder()}: {text_of(error)}',
    ) from error
  except (ray_errors.RayError, RuntimeError, ValueError) as error:
    # As of another version, or without the token that variables tell of.
    raise SettingError(
      'ray_address', f'must be of a cluster that takes us: {text_of(error)}'
    ) from error


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
      f'{text_of(error)}. `ray start --head` tells it.',
    ) from error


def _have_own_token() -> None:
  """Gives this process a token for its own cluster, unless users have one.

  Ray 2.60 asks for a token. It would write one into the home folder, for which
  all that `ray start` starts there would ask too from then on. The token stays
  when the cluster has ended: Ray goes on with the first that a process has.
  """
  if not any(one in os.environ for one in (_TOKEN, _TOKEN_PATH, _TOKEN_MODE)):
    os.environ[_TOKEN] = secrets.token_hex(32)
    # It would tell of it, and how to do without.
    logging.getLogger('ray._private.authentication').setLevel(logging.ERROR)


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
