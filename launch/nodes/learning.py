"""Base classes of learner nodes: network, learner, checkpoints, reports."""

import functools
import pickle
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from repertory.components import (
  interfaces,
  learners,
  loggers,
  replay,
  transports,
  types,
  variables,
)
from repertory.components.checkpoints import checkpointing
from repertory.components.config import schedules
from repertory.launch.coordination import kinds, logs, reports, statuses
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import checkpoints, node


class CheckpointingNode(node.Node):
  """Base class of the learner of a run: checkpoints and reports on tables.

  A subclass passes the learner to `_begin_with`.

  Attributes:
    learner: Learner of the network, or the mean of several.
    begins_at_step: Learner steps at the start of this run.
  """

  learner: Any

  def __init__(self, context: node.Context, session: session_lib.Session):
    super().__init__(context)
    self._session = session
    self._context = context

  def _begin_with(self, learner: Any, snapshots: transports.Snapshots) -> None:
    """Sets the learner, and restores it if the session is resumed."""
    self.learner = learner
    if self._session.is_resumed:
      self._context.report_start('restoring the checkpoint')
    self._checkpoints = checkpoints.CheckpointWriter(
      self._session, snapshots, self._coordinator, learner, self.name
    )
    self._context.closing.callback(self._checkpoints.close)
    self._resumed_from = self._checkpoints.restore()
    self.begins_at_step = learner.steps

  @property
  def version(self) -> int:
    """Learner steps of the current variables."""
    return self.learner.steps

  @property
  def description(self):
    return {
      'config': self._session.identity,
      'updates_to_come': self._session.updates_to_come,
      'run_starts_at_learner_step': self.begins_at_step,
      'resumed_from': self._resumed_from,
      'initial_from': self._session.initial,
    }

  def checkpoint_if_due(self) -> None:
    """Begins a checkpoint if the period has passed."""
    self._checkpoints.write_if_due()

  def checkpoint(self) -> str | None:
    """Writes the final checkpoint; returns its path, or None on failure."""
    return self._checkpoints.write()

  def _wait_for_actors(self, seconds: float) -> None:
    """Waits for the last reports of stopped actors, at most for a time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
      if self._coordinator.have_actors_finished():
        return
      time.sleep(reports.PERIOD_SECONDS / 5)

  def is_untouched(self) -> bool:
    """Returns whether this run took no step, so needs no checkpoint."""
    steps = self._coordinator.reply().steps
    before = self._session.counts['steps']
    return self.version == self.begins_at_step and steps == before

  def _report_tables(
    self, tables: Mapping[str, replay.TableInfo]
  ) -> reports.HeartbeatReply:
    """Reports learner steps and table statuses to the coordinator."""
    reply = self._coordinator.report_learner(self.name, self.version, tables)
    for table in self._session.tables:
      row = _describe_table(table, tables[table.name])
      self._coordinator.write(logs.label_of(table), row)
    return reply


class LearningNode(CheckpointingNode):
  """Base class of nodes that train a network, and serve its variables.

  A subclass makes the learner from `_update`.

  Attributes:
    network: Network that is trained.
  """

  learner: learners.LearnerState

  def __init__(self, context: node.Context, session: session_lib.Session):
    """Makes the network and its update."""
    super().__init__(context, session)
    self._publisher: variables.Publisher | None = None
    experiment = session.experiment
    with context.initializing():
      context.report_start('making its network')
      tf.random.set_seed(session.make_seed(session_lib.VARIABLES))
      self.network = experiment.builder.make_network(session.spec)
      made = {variable.ref() for variable in self.network.variables}
      self._update = experiment.builder.make_update(self.network, session.spec)
    if schedules.of_config(experiment.builder.config):
      learners.set_run_length(self._update, session.expected_updates)
    interfaces.refuse_late(
      [v for v in self.network.variables if v.ref() not in made], 'make_update'
    )
    self._logger = loggers.Aggregate(
      functools.partial(self._coordinator.write, kinds.LEARNER.name),
      latest=['skipped_updates'],
    )
    context.closing.callback(self._logger.close)

  def _begin_with(self, learner, snapshots):
    if self._session.experiment.deterministic:
      _check_repeats(learner)
    super()._begin_with(learner, snapshots)

  @property
  def description(self):
    return {
      **super().description,
      'jit_compile': self._session.jit_compile,
      'samples_per_insert': _ratio(self._session.experience.learned.table),
    }

  @property
  def served(self):
    read = self.learner.get_variables
    get = cached(read, lambda: (self.version, self.max_priority))
    return {'get_variables': get}

  @property
  def max_priority(self) -> float:
    """The largest priority so far."""
    return self.learner.max_priority

  @property
  def publisher(self) -> variables.Publisher:
    """Publisher of the variables, in use from the first access on."""
    if self._publisher is None:
      self._publisher = variables.Publisher(self.network.variables)
      self._publish()
    return self._publisher

  def _publish(self) -> None:
    """Publishes the network's variables, if a publisher is in use."""
    if self._publisher is not None:
      self._publisher.publish(self.version, self.max_priority)


def cached(
  read: Callable[[Sequence[str]], Sequence[types.Nest]],
  age: Callable[[], Hashable],
) -> Callable[[Sequence[str]], bytes]:
  """Returns `read` for remote clients, pickled once per version for all.

  All requests before the next learner step share one read. The answer is one
  byte string, since RPC takes several times as long for dozens of arrays.

  Args:
    age: Returns a key that changes with the variables.
  """
  lock = threading.Lock()
  # By names: version key before the read, and the pickled variables.
  kept: dict[tuple[str, ...], tuple[Hashable, bytes]] = {}

  def get(names: Sequence[str]) -> bytes:
    with lock:  # Concurrent requests share this read.
      # Before the read: after a step in between, the next request reads again.
      key, now = tuple(names), age()
      if key not in kept or kept[key][0] != now:
        kept[key] = now, pickle.dumps(read(names), pickle.HIGHEST_PROTOCOL)
      return kept[key][1]

  return get


def report_lost_items(
  name: str, coordinator: Any, end: transports.LearnerSide, num_batches: int
) -> None:
  """Resets batch counts after a batch timeout, and warns of lost items."""
  if lost := end.reset_count(num_batches):
    coordinator.warn(name, f'Reverb lost at most {lost} sampled items')


def report_data_change(
  context: node.Context, session: session_lib.Session, paths: Sequence[str]
) -> None:
  """Warns, in a resumed run, that sampling of the data sets restarts."""
  if not session.is_resumed:
    return
  if session.experiment.deterministic:
    raise checkpointing.CheckpointError(
      'A deterministic run can only resume with the same data: those of '
      f'{", ".join(paths)} have changed. Leave deterministic out to resume '
      'nevertheless.',
      fresh=True,
    )
  context.coordinator.warn(
    context.name,
    'sampling of the data restarts: the checkpoint has no state for them',
  )


def _describe_table(
  table: replay.TableSpec, status: replay.TableInfo
) -> dict[str, Any]:
  limit = table.rate_limit
  return {
    'size': status.size,
    'inserts': status.inserts,
    'samples': status.samples,
    'samples_per_insert': (
      statuses.achieved_ratio(status, limit) if limit else None
    ),
    'target_samples_per_insert': _ratio(table),
    'inserts_wait': float(status.waiting == 'insert'),
    'samples_wait': float(status.waiting == 'sample'),
  }


def _ratio(table: replay.TableSpec) -> float | None:
  return table.rate_limit.samples_per_insert if table.rate_limit else None


def _check_repeats(learner: learners.LearnerState) -> None:
  """Raises ValueError if XLA may compile the update nondeterministically."""
  found = learner.compiled.open_slices
  if found:
    raise ValueError(
      'A deterministic run must have no slices x[i] with indices known only '
      'at run time, which XLA may compile in several ways, got '
      f'{", ".join(found)}. Use tf.gather(x, i), set jit_compile to false, or '
      'leave deterministic out.'
    )
