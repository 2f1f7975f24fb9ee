"""Replay server and its status."""

import dataclasses
import os
import socket
from collections.abc import Mapping, Sequence

import reverb
from reverb import errors as reverb_errors

from repertory.components.checkpoints import checkpointing
from repertory.components.config import settings
from repertory.components.replay import reverb_tables
from repertory.components.replay import tables as tables_lib
from repertory.components.runtime import network_interfaces

# A server answers at once, unless it is dead or its machine overloaded.
STATUS_TIMEOUT_SECONDS = 60


@dataclasses.dataclass(frozen=True)
class TableInfo:
  """State of a replay table.

  Attributes:
    size: Items in the table.
    max_size: Capacity, in items.
    inserts: Items ever inserted.
    samples: Items ever sampled.
    waiting: The side that the rate limiter blocks: 'insert', 'sample' or ''.
  """

  size: int
  max_size: int
  inserts: int
  samples: int
  waiting: str = ''


def make_server(
  tables: Sequence[tables_lib.TableSpec],
  port: int | None = None,
  checkpoint_directory: str | None = None,
  interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
) -> reverb.Server:
  """Starts a replay server in this process.

  Args:
    tables: Descriptions of its tables.
    port: Port of the server; None picks a free port.
    checkpoint_directory: Directory for `client.checkpoint()`. The tables are
      restored from it if it holds a complete checkpoint. None disables both.
    interface: Network interface of the server. Reverb has no authentication:
      all clients may read and change everything, and request checkpoints.

  Raises:
    CheckpointError: If the checkpoint cannot be read.
    ValueError: If the port is in use. Reverb itself would start, and clients
      would reach either server.
  """
  if port is not None:
    _check_port_is_free(port)
  checkpointer = None
  if checkpoint_directory is not None:
    os.makedirs(checkpoint_directory, exist_ok=True)
    checkpointer = reverb.checkpointers.DefaultCheckpointer(
      checkpoint_directory
    )
  made = [reverb_tables.make_table(table) for table in tables]
  try:
    server = reverb.Server(made, port, checkpointer)
  except RuntimeError as error:  # Reverb raises no specific type.
    if checkpoint_directory is None or not os.listdir(checkpoint_directory):
      raise
    raise checkpointing.CheckpointError(
      f'{checkpoint_directory} of a checkpoint cannot be read: {error}',
      fresh=True,
    ) from error
  try:
    network_interfaces.restrict(server.port, interface)
  except BaseException:
    server.stop()
    raise
  return server


def table_status(
  client: reverb.Client,
  tables: Sequence[tables_lib.TableSpec] = (),
  timeout_seconds: int | None = None,
) -> Mapping[str, TableInfo]:
  """Queries the status of the server's tables.

  Args:
    client: Client of the server.
    tables: Descriptions of the tables that may hold bundles.
    timeout_seconds: Maximum wait for the answer; None for
      `STATUS_TIMEOUT_SECONDS`.

  Raises:
    TimeoutError: If the server does not answer.
    ConnectionError: If the server goes away before its answer.
  """
  if timeout_seconds is None:
    timeout_seconds = STATUS_TIMEOUT_SECONDS
  try:
    infos = client.server_info(timeout=timeout_seconds)
  except reverb_errors.DeadlineExceededError as error:
    raise TimeoutError(
      f'The replay server at {client.server_address} did not answer within '
      f'{timeout_seconds} seconds.'
    ) from error
  except RuntimeError as error:
    raise ConnectionError(
      f'The replay server at {client.server_address} went away: '
      f'{settings.text_of(error)}.'
    ) from error
  sizes = {table.name: table.bundle_size for table in tables}
  return {
    name: _to_status(info, sizes.get(name, 1)) for name, info in infos.items()
  }


def _to_status(info, bundle_size: int) -> TableInfo:
  inserts = info.rate_limiter_info.insert_stats.completed
  samples = info.rate_limiter_info.sample_stats.completed
  return TableInfo(
    size=info.current_size * bundle_size,
    max_size=info.max_size * bundle_size,
    inserts=inserts * bundle_size,
    samples=samples * bundle_size,
    waiting=_waiting_side(
      info.rate_limiter_info, info.current_size, inserts, samples
    ),
  )


def _waiting_side(limiter, size: int, inserts: int, samples: int) -> str:
  if size < limiter.min_size_to_sample:
    return 'sample'
  difference = inserts * limiter.samples_per_insert - samples
  if difference + limiter.samples_per_insert > limiter.max_diff:
    return 'insert'
  if difference - 1 < limiter.min_diff:
    return 'sample'
  return ''


def _check_port_is_free(port: int) -> None:
  with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
    probe.settimeout(1)
    if probe.connect_ex(('localhost', port)) == 0:
      raise ValueError(
        'port must be free for the replay server, but another process listens '
        f'on {port}. Choose another.'
      )
