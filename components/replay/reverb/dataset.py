"""Batches from a replay server."""

import threading
import time
from typing import Any

import reverb
import tensorflow as tf
import tree
from tensorflow.python.eager import cancellation, context, execute

from repertory.components import types
from repertory.components.replay import batches, tables, waits
from repertory.components.replay.reverb import client
from repertory.components.runtime import nests, signals

_WATCH_PERIOD_SECONDS = 0.5


class ReplayDataset(batches.Batches):
  """Iterator over batches of a table on a replay server.

  Prefetched samples are stale, and the rate limiter counts them. So their
  number is bounded: at most one batch in transit and `prefetch` + 1
  further ones.

  A Reverb dataset itself waits forever if its server is gone. Here a wait ends
  on `close`, on the stop signal, or after the timeout.

  Reverb 0.7.2 may lose items of a server in the same process: during a wait it
  checks every three seconds whether it was cancelled, and drops items sampled
  at that instant, although the limiter has counted them. Set
  `batch_timeout_seconds` where a batch is known to be due.
  """

  def __init__(
    self,
    connection: client.Connection,
    table: tables.TableSpec,
    batch_size: int,
    *,
    prefetch: int = 1,
  ):
    """Connects to the server.

    Args:
      connection: Its timeout and stop signal end a wait.
      table: Description of the table to sample.
      batch_size: B, at least 1.
      prefetch: Batches prepared ahead of the learner, 0 for none.
    """
    batches.check_sizes(batch_size, prefetch)
    if batch_size % table.bundle_size:
      raise ValueError(
        f'batch_size must be a multiple of {table.bundle_size}, the bundle '
        f"size of table '{table.name}', got {batch_size}."
      )
    self._table = table
    self._connection = connection
    self._batch_size = batch_size
    self._prefetch = prefetch
    self._opening = threading.Lock()  # Nothing is opened after `close`.
    self._closed = threading.Event()
    self._open()
    self._is_starved = False
    self._waiting_since: float | None = None
    self._timed_out = False
    self._watcher = threading.Thread(
      target=self._watch, name='replay_dataset_watcher', daemon=True
    )
    self._watcher.start()

  def _open(self) -> None:
    """Starts sampling."""
    columns = self._table.packing.stored_signature
    bundle_size = self._table.bundle_size
    dataset = reverb.TrajectoryDataset(
      server_address=self._connection.address,
      table=self._table.name,
      dtypes=[spec.dtype for spec in columns],
      shapes=[spec.shape for spec in columns],
      max_in_flight_samples_per_worker=self._batch_size // bundle_size,
      num_workers_per_iterator=1,
    )
    dataset = dataset.batch(
      self._batch_size // bundle_size, drop_remainder=True
    )
    dataset = dataset.map(self._unpack)
    if self._prefetch:
      dataset = dataset.prefetch(self._prefetch)
    # Otherwise tf.data would prefetch more.
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    dataset = dataset.with_options(options)
    self._element_spec = tree.unflatten_as(
      types.Sample(self._table.signature, *[None] * 3), dataset.element_spec
    )
    self._iterator = iter(dataset)
    specs = tree.flatten(self._element_spec)
    self._num_leaves = len(specs)
    self._unflatten = nests.Unflattener(self._element_spec)
    self._attributes = (
      'output_types',
      [spec.dtype.as_datatype_enum for spec in specs],
      'output_shapes',
      [spec.shape for spec in specs],
    )
    self._cancellation = cancellation.CancellationManager()

  @property
  def element_spec(self) -> types.Sample:
    return self._element_spec

  def __next__(self) -> types.Sample:
    self._waiting_since = time.monotonic()
    try:
      return self._get_next()
    except tf.errors.CancelledError:
      pass  # Keeping the error would keep the iterator alive.
    finally:
      self._waiting_since = None
    if self._timed_out:
      connection, table = self._connection, self._table
      raise waits.no_batch(table, connection, lambda: connection.look(table))
    if self._is_starved:
      self._is_starved = False
      with self._opening:
        if not self._closed.is_set():
          self._open()
      raise batches.BatchTimeout
    raise signals.Stopped

  def close(self) -> None:
    """Ends current and future waits, and the watching thread."""
    with self._opening:
      self._closed.set()
    self._cancellation.start_cancel()
    self._watcher.join()
    self._iterator = None  # It would sample as long as it is alive.

  def _get_next(self) -> types.Sample:
    """Runs the iterator's operation directly, so that it can be cancelled."""
    # A `tf.function` without XLA would leak 400 bytes per call.
    iterator = self._iterator
    if iterator is None:
      raise signals.Stopped
    leaves = execute.execute_with_cancellation(
      'IteratorGetNext',
      self._num_leaves,
      [iterator._iterator_resource],
      self._attributes,
      context.context(),
      self._cancellation,
    )
    return self._unflatten(leaves)

  @tf.autograph.experimental.do_not_convert
  def _unpack(self, sample: Any) -> tuple[tf.Tensor, ...]:
    """Returns the leaves of a `types.Sample`; a dataset would stack lists."""
    info, bundle_size = sample.info, self._table.bundle_size
    leaves = [info.key, info.probability, info.table_size * bundle_size]
    if bundle_size > 1:  # Items of a bundle share its metadata.
      leaves = [
        tf.reshape(tf.repeat(leaf, bundle_size), [self._batch_size])
        for leaf in leaves
      ]
    return (*tree.flatten(self._table.packing.unpack(sample.data)), *leaves)

  def _watch(self) -> None:
    while not self._closed.wait(_WATCH_PERIOD_SECONDS):
      since = self._waiting_since
      if since is None:
        continue
      if self._connection.stop.is_set():
        self._cancellation.start_cancel()
        return
      waited = time.monotonic() - max(since, self._timeout_start)
      batch_timeout = self.batch_timeout_seconds
      if waited > self._connection.timeout_seconds:
        self._timed_out = True
        self._cancellation.start_cancel()
        return
      if batch_timeout is not None and waited > batch_timeout:
        self._is_starved = True
        self._cancellation.start_cancel()
