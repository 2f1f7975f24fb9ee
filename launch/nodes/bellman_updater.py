"""Bellman updater: computes targets of replayed items (QT-Opt)."""

import time

import numpy as np
import tensorflow as tf
import tree

from repertory.components import interfaces, replay, transports, variables
from repertory.components.runtime import compilation
from repertory.launch.coordination import reports, statuses
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import learning, node, offline

# Period of reports with figures; other heartbeats have none.
_REPORT_PERIOD_SECONDS = 1.0

# Timeout for a last prefetched batch once none is due.
_LAST_SECONDS = 1.0

_SEED_SIZE = 2**31


class BellmanUpdaterNode(node.Node):
  """Samples items from replay, and writes them with targets to a train buffer.

  Two rate limiters block it: that of replay and that of the train buffer.
  """

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    updater: interfaces.BellmanUpdater,
    *,
    variable_client: variables.VariableClient,
    transport: transports.Transport,
    index: int = 0,
  ):
    """Compiles the computation of targets.

    `transport` carries items both ways, and its stop signal ends every wait.
    """
    super().__init__(context)
    self._variable_client = variable_client
    context.closing.callback(variable_client.close)
    mixed = offline.make_demonstrations(
      session, context.stop, context.report_start
    )
    self._end = transport.make_learner_side()
    context.closing.callback(self._end.close)
    if mixed is not None:
      paths = session.experiment.demonstrations
      learning.report_data_change(context, session, paths)
      self._end.mix_in(mixed)
    self._num_rows = session.experience.rows
    self._writer = transport.learned.make_writer(
      max_pending_items=self._num_rows
    )
    context.closing.callback(self._writer.close)
    self._writer.open(self._num_rows)
    context.report_start('compiling its targets')

    def compute(sample, seed):
      with interfaces.no_late_variables(f'a call of {type(updater).__name__}'):
        return updater(sample, seed)

    self._compute = compilation.CompiledFunction(
      compute,
      (self._end.batches.element_spec, tf.TensorSpec([2], tf.int32)),
      session.jit_compile,
    )
    self._seed = session.make_seed(
      session_lib.TARGETS, index, context.generation
    )
    self._num_batches = 0
    self._has_begun = self._is_ending = False
    self._rates = statuses.Rates()
    self._reported_at = 0.0

  @property
  def description(self):
    return {'targets_at_a_time': self._num_rows}

  def run(self) -> None:
    """Computes targets until the actors are done and no batch is due."""
    self._variable_client.update(wait=True)
    self._end.wait_for_items()
    self._has_begun = True
    while self.step() or not self._is_ending:
      pass
    # The learner expects all targets once this node is done.
    self._writer.flush()

  def step(self) -> bool:
    """Computes the targets of the next batch; False if none is expected."""
    try:
      sample = next(self._end.batches)
    except replay.BatchTimeout:
      if not self._is_ending:
        learning.report_lost_items(
          self.name, self._coordinator, self._end, self._num_batches
        )
      return False
    self._variable_client.update()
    seed = np.array([self._seed, self._num_batches % _SEED_SIZE], np.int32)
    leaves = self._compute(*tree.flatten(sample), seed)
    version = np.full([self._num_rows], self._variable_client.version, np.int64)
    self._num_batches += 1
    self._writer.put([*(leaf.numpy() for leaf in leaves), version])
    if self._writer.is_ahead():
      self._writer.wait()
    return True

  def report(self) -> reports.HeartbeatReply:
    """Reports throughput to the coordinator, and handles the reply."""
    now = time.monotonic()
    if now - self._reported_at < _REPORT_PERIOD_SECONDS:
      reply = self._coordinator.poll(self.name)
    else:
      self._reported_at = now
      (rate,) = self._rates.measure(self._writer.num_items)
      row = {
        'targets': self._writer.num_items,
        'targets_per_second': rate,
        'version': self._variable_client.version,
        'age_seconds': self._variable_client.age_seconds or 0.0,
      }
      reply = self._coordinator.report_row(reports.TARGETS, self.name, row)
    self._handle(reply)
    return reply

  def _handle(self, reply: reports.HeartbeatReply) -> None:
    """Adjusts waits: resets the timeout, or expects no more batches."""
    if reply.is_acting_delayed:
      self._end.reset_timeout()
    if reply.phase != reports.LABELING or self._end.is_batch_due():
      return
    if self._has_begun:
      # Prefetched batches are still used; they arrive at once.
      self._end.expect_batches(_LAST_SECONDS)
      self._is_ending = True
    else:
      self._stop.set()  # Replay never reached its minimum size.
