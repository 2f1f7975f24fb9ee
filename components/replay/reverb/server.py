"""Replay server."""

import os
from collections.abc import Sequence

import reverb

from repertory.components.checkpoints import checkpointing
from repertory.components.network import network_interfaces
from repertory.components.replay import tables as tables_lib


def make_server(
  tables: Sequence[tables_lib.TableSpec],
  checkpoint_directory: str | None = None,
  interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
) -> reverb.Server:
  """Starts a replay server in this process, at a free port.

  Args:
    tables: Descriptions of its tables.
    checkpoint_directory: Directory for `client.checkpoint()`, whose complete
      checkpoint is restored; None disables both.
    interface: Network interface of the server. Reverb has no authentication:
      all clients may read and change everything, and request checkpoints.

  Raises:
    CheckpointError: If the checkpoint cannot be read.
  """
  checkpointer = None
  if checkpoint_directory is not None:
    os.makedirs(checkpoint_directory, exist_ok=True)
    checkpointer = reverb.checkpointers.DefaultCheckpointer(
      checkpoint_directory
    )
  made = [make_table(table) for table in tables]
  try:
    server = reverb.Server(made, None, checkpointer)
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


def make_table(table: tables_lib.TableSpec) -> reverb.Table:
  """Converts a description to a Reverb table."""
  max_size = table.max_size // table.bundle_size
  limit = table.rate_limit
  if limit is None:
    limiter = reverb.rate_limiters.Queue(max_size)
  elif limit.error_buffer == float('inf'):
    limiter = reverb.rate_limiters.MinSize(limit.min_size)
  else:
    limiter = reverb.rate_limiters.SampleToInsertRatio(
      samples_per_insert=limit.samples_per_insert,
      min_size_to_sample=limit.min_size,
      error_buffer=limit.error_buffer,
    )
  sampler = reverb.selectors.Uniform()
  if table.is_queue:
    sampler = reverb.selectors.Fifo()
  elif table.priority_exponent is not None:
    sampler = reverb.selectors.Prioritized(table.priority_exponent)
  return reverb.Table(
    name=table.name,
    sampler=sampler,
    remover=reverb.selectors.Fifo(),
    max_size=max_size,
    max_times_sampled=int(table.is_queue),
    rate_limiter=limiter,
    signature=table.packing.stored_signature,
  )
