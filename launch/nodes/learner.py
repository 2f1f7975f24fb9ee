"""The learner."""

import contextlib
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from repertory.components import (
  core,
  datasets,
  loggers,
  replay,
  roads,
  signals,
  types,
  variables,
)
from repertory.components.roads import learner_end
from repertory.launch.coordination import kinds, logs, reports, statuses
from repertory.launch.nodes import checkpoints, node
from repertory.launch.runs import session as session_lib

# How long a learner that was stopped waits for the actors' last reports.
_LAST_REPORT_SECONDS = 1.5


class LearnerNode(node.Node, core.VariableSource):
  """Learns, keeps the ratio to acting, and writes checkpoints."""

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    road: roads.Road,
  ):
    """Makes the learner, and restores it if the session is resumed.

    Args:
      road: Brings what is learned from; its stop signal ends every wait.
    """
    self.name = context.name
    self._stop = context.stop
    coordinator = context.coordinator
    builder, spec = session.experiment.builder, session.spec
    self._session = session
    self._coordinator = coordinator
    self._phase, self._phase_since = reports.ACTING, time.monotonic()
    self._is_published = False
    self._table = session.experience.table
    tf.random.set_seed(session.make_seed(session_lib.VARIABLES))
    self.network = builder.make_network(spec)
    self._end = road.make_learner_end()
    self._logger = logs.aggregate(
      _RemoteLogger(coordinator, kinds.LEARNER.name), latest=['skipped_updates']
    )
    self.learner = builder.make_learner(
      builder.make_update(self.network, spec),
      self._end.batches,
      self._end.priorities,
      self._logger,
      session.divergence,
    )
    self._checkpoints = checkpoints.CheckpointWriter(
      session, self._end, coordinator, self.learner, self.name
    )
    self._resumed_from = self._checkpoints.restore()
    self._begins_at_step = self.learner.steps
    self._end.begin(self.learner.steps)

  @property
  def description(self):
    return {
      'config': self._session.identity,
      'samples_per_insert': _ratio(self._table),
      'run_starts_at_learner_step': self._begins_at_step,
      'resumed_from': self._resumed_from,
    }

  @property
  def served(self):
    return {'get_variables': self.get_variables}

  @property
  def max_priority(self) -> float:
    """The largest priority so far."""
    return self.learner.max_priority

  @property
  def version(self) -> int:
    """Learner steps of the variables in use."""
    return self.learner.steps

  @functools.cached_property
  def publisher(self) -> variables.Publisher:
    """Publishes the network's variables, now and after each step."""
    publisher = variables.Publisher(self.network.variables)
    publisher.publish(self.version, self.max_priority)
    self._is_published = True
    return publisher

  def get_variables(self, names: Sequence[str]) -> list[types.Nest]:
    """Returns one nest of arrays per name."""
    return self.learner.get_variables(names)

  def run(self) -> None:
    with contextlib.suppress(signals.Stopped):
      self._learn()
    self._wait_for_actors()
    self.checkpoint()
    self._logger.flush()

  def _learn(self) -> None:
    """Learns until the actors are done and no batch is due, or stopped."""
    self._end.wait_for_items()
    while not self._stop.is_set():
      if self._phase == reports.LEARNING and self.is_caught_up():
        return
      self.step()
      self.checkpoint_if_due()

  def _wait_for_actors(self) -> None:
    """Gives actors that were stopped a moment to report their last steps."""
    deadline = time.monotonic() + _LAST_REPORT_SECONDS
    while time.monotonic() < deadline:
      if self._coordinator.have_actors_finished():
        return
      time.sleep(reports.PERIOD_SECONDS / 5)

  def catch_up(self, num_items: int, flush: Callable[[], None]) -> None:
    """Learns until no batch is due, where the learner and one actor take turns.

    Args:
      num_items: That have been added since this node was made.
      flush: Waits until the table has taken them all, before the learner
        samples: else it would depend on chance from which items is sampled.
    """
    self._end.expect_batches()
    while self._end.is_due(self.version, num_items):
      flush()
      self.step()

  def is_caught_up(self) -> bool:
    """Asks the table whether learning has kept the ratio to acting."""
    return not self._end.is_due(self.version)

  def step(self) -> None:
    """Learns from the next batch, as soon as the rate limiter gives it.

    Or takes none, if batches are expected and one was lost.
    """
    try:
      self.learner.step()
    except datasets.Starved:
      if lost := self._end.count_anew(self.version):
        what = f'Reverb lost items that it had sampled, or {lost} at most'
        self._coordinator.warn(self.name, what)
      return
    if self._is_published:
      self.publisher.publish(self.version, self.max_priority)

  def report(self) -> reports.Directive:
    """Tells the coordinator how far learning and the tables are."""
    tables = self._end.statuses()
    table = tables[self._table.name]
    limit = self._table.rate_limit
    ratio = statuses.achieved_ratio(table, limit) if limit else None
    directive = self._coordinator.report_learner(
      self.name, self.learner.steps, tables
    )
    self._coordinator.write(
      kinds.REPLAY.name,
      {
        'size': table.size,
        'inserts': table.inserts,
        'samples': table.samples,
        'samples_per_insert': ratio,
        'target_samples_per_insert': _ratio(self._table),
      },
    )
    self._heed(directive)
    return directive

  def _heed(self, directive: reports.Directive) -> None:
    """Sees to it that the learner waits as long as something may come."""
    if directive.is_acting_delayed:
      self._end.excuse()
    if directive.phase != self._phase:
      self._phase, self._phase_since = directive.phase, time.monotonic()
    if self._phase != reports.LEARNING:
      return
    # With all actors done, a learner that has caught up would wait for ever.
    if self.is_caught_up():
      self._stop.set()
    # And so would one for what was lost, though not before all had time to come
    # that the actors left.
    elif time.monotonic() - self._phase_since > learner_end.PATIENCE_SECONDS:
      self._end.expect_batches()

  def checkpoint_if_due(self) -> None:
    """Begins a checkpoint when the last one is old enough."""
    self._checkpoints.write_if_due()

  def checkpoint(self) -> str | None:
    """Writes the last checkpoint; returns its path, or None if it failed."""
    return self._checkpoints.write()

  def close(self) -> None:
    """Writes what the log still holds back and ends all threads."""
    with contextlib.ExitStack() as stack:  # Whichever of them fails.
      stack.callback(self._end.close)
      stack.callback(self._logger.close)
      stack.callback(self._checkpoints.close)


class _RemoteLogger(loggers.Logger):
  """Hands rows to the coordinator."""

  def __init__(self, coordinator: Any, label: str):
    self._coordinator = coordinator
    self._label = label

  def write(self, data) -> None:
    self._coordinator.write(self._label, dict(data))

  def close(self) -> None:
    pass


def _ratio(table: replay.Table) -> float | None:
  return table.rate_limit.samples_per_insert if table.rate_limit else None
