"""What runs in each node, whether nodes share a thread or not."""

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import reverb
import tensorflow as tf

from repertory.components import (
  actors,
  adders,
  core,
  datasets,
  environment_loop,
  loggers,
  programs,
  replay,
  signals,
  types,
  variables,
)
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.coordination import logs, reports, statuses
from repertory.launch.host import lifetime
from repertory.launch.nodes import acting, checkpoints, pacing
from repertory.launch.runs import session as session_lib

# How often the learner looks whether it can begin.
_POLL_SECONDS = 0.1


def start_replay(session: session_lib.Session) -> reverb.Server:
  """Starts the replay server, filled from the checkpoint if there is one."""
  server = replay.make_server(
    session.tables, checkpoint_directory=session.replay_directory
  )
  # It has read all; links would keep the room of checkpoints that are removed.
  replay.remove_checkpoints(session.replay_directory)
  return server


class ActorNode(acting.ActingNode):
  """Acts for some of the environments, with a policy of its own."""

  def __init__(
    self,
    session: session_lib.Session,
    name: str,
    environment_ids: Sequence[int],
    connection: replay.Connection,
    learner: core.VariableSource,
    coordinator: coordinator_lib.Coordinator,
  ):
    """Makes the environments and all that acts for them.

    Args:
      session: What runs.
      name: Of this node, 'actor/<index>'.
      environment_ids: Of its environments.
      connection: To the replay server; its stop signal ends every wait.
      learner: A `LearnerNode` of the same thread, whose network is shared, or
        the client of one elsewhere, of which variables are fetched.
      coordinator: Grants steps and takes counts.
    """
    builder = session.experiment.builder
    batch_size = len(environment_ids)
    network, self._variable_client = take_network(
      session,
      learner,
      connection.stop,
      update_period=builder.config.variable_update_period,
    )
    # A learner of the same thread flushes before it samples.
    max_pending_items = sys.maxsize
    if self._variable_client is not None:
      max_pending_items = builder.max_pending_items_per_environment * batch_size
    versions: Any = self._variable_client or learner
    self._adder = builder.make_adder(
      adders.Destination(
        connection,
        session.tables[0],
        priority=lambda: versions.max_priority,
        version=lambda: versions.version,
        max_pending_items=max_pending_items,
      ),
      batch_size,
    )
    self._environment = session.make_environments(
      environment_ids, lifetime.life()
    )
    policy = make_policy(session, network, name, coordinator)
    actor = actors.PolicyActor(
      policy,
      session.spec.observations,
      environment_ids,
      adder=self._adder,
      variable_client=self._variable_client,
      jit_compile=builder.config.jit_compile,
    )
    acting_with = policy.describe(environment_ids)
    ids = list(environment_ids)
    coordinator.register(name, {'environment_ids': ids, **acting_with})
    loop = environment_loop.EnvironmentLoop(self._environment, actor)
    super().__init__(name, [loop], batch_size, coordinator, connection.stop)

  @property
  def num_items(self) -> int:
    """Items this node has added to replay."""
    return self._adder.num_items

  def flush(self) -> None:
    """Waits until replay has taken all items."""
    self._adder.flush()

  def run(self) -> None:
    if self._variable_client is not None:
      self._variable_client.update(wait=True)
    super().run()

  def close(self) -> None:
    """Hands over what is complete and ends all threads."""
    self._adder.close()
    if self._variable_client is not None:
      self._variable_client.close()
    self._environment.close()

  def _variables(self) -> tuple[int, float]:
    client = self._variable_client
    return (client.version, client.age_seconds) if client else (-1, 0.0)


class LearnerNode(core.VariableSource):
  """Learns, keeps the ratio to acting, and writes checkpoints."""

  name = 'learner'

  def __init__(
    self,
    session: session_lib.Session,
    connection: replay.Connection,
    coordinator: coordinator_lib.Coordinator,
  ):
    """Makes the learner, and restores it if the session is resumed.

    Args:
      session: What runs.
      connection: To the replay server; its stop signal ends every wait.
      coordinator: Takes counts and rows.
    """
    builder, spec = session.experiment.builder, session.spec
    self._session = session
    self._connection = connection
    self._coordinator = coordinator
    self._publisher: variables.Publisher | None = None
    self._table = session.tables[0]
    self._batch_size = builder.batch_size(session.experiment.num_environments)
    tf.random.set_seed(session.make_seed(session_lib.VARIABLES))
    self.network = builder.make_network(spec)
    # Asked before there is a dataset: that one samples ahead of the learner.
    tables = replay.table_status(connection.client, session.tables)
    self._dataset = builder.make_dataset(
      connection, self._table, self._batch_size
    )
    self._priority_updater = builder.make_priority_updater(
      connection, self._table
    )
    self._logger = logs.aggregate(
      _RemoteLogger(coordinator, 'learner'), latest=['skipped_updates']
    )
    self.learner = builder.make_learner(
      builder.make_update(self.network, spec),
      self._dataset,
      self._priority_updater,
      self._logger,
      session.divergence,
    )
    self._checkpoints = checkpoints.CheckpointWriter(
      session, connection, coordinator, self.learner, self._priority_updater
    )
    resumed_from = self._checkpoints.restore(tables)
    status = tables[self._table.name]
    self._first_inserts = status.inserts
    self._pace = pacing.Pace(
      connection, self._table, self._batch_size, status, self.learner.steps
    )
    coordinator.register(
      self.name,
      {
        'config': session.identity(),
        'samples_per_insert': _ratio(self._table),
        'run_starts_at_learner_step': self.learner.steps,
        'resumed_from': resumed_from,
      },
    )

  @property
  def max_priority(self) -> float:
    """The largest priority so far."""
    return self.learner.max_priority

  @property
  def version(self) -> int:
    """Learner steps of the variables in use."""
    return self.learner.steps

  def publish_to(self, publisher: variables.Publisher) -> None:
    """Publishes the network's variables, now and after each step."""
    self._publisher = publisher
    publisher.publish(self.version, self.max_priority)

  def get_variables(self, names: Sequence[str]) -> list[types.Nest]:
    """Returns one nest of arrays per name."""
    return self.learner.get_variables(names)

  def catch_up(self, actor: ActorNode) -> None:
    """Learns until no batch is due.

    Args:
      actor: The only one that has added items since this node was made. Before
        the learner samples, the table must have taken them all: else it would
        depend on chance from which items is sampled.
    """
    self.expect_batches()
    while self._is_due(self._first_inserts + actor.num_items):
      actor.flush()
      self.step()

  def expect_batches(self) -> None:
    """Takes a batch for lost, from now on, that does not come in due time."""
    self._dataset.patience_seconds = pacing.PATIENCE_SECONDS

  def wait_for_items(self) -> None:
    """Waits until the table holds enough to be sampled from.

    That may take long; the time-out is for the time without a new item.

    Raises:
      signals.Stopped: If the stop signal was set.
      TimeoutError: If no item came in time.
    """
    inserts, since = -1, time.monotonic()
    while (status := self._status()).inserts < self._table.min_size:
      if status.inserts > inserts:
        inserts, since = status.inserts, time.monotonic()
      if time.monotonic() - since > self._connection.timeout_seconds:
        raise TimeoutError(
          f'Waited {self._connection.timeout_seconds:g} seconds for a new item '
          f"in table '{self._table.name}' of {self._connection}; it has "
          f'{inserts} and needs {self._table.min_size}.'
        )
      if self._connection.stop.wait(_POLL_SECONDS):
        raise signals.Stopped

  def is_caught_up(self) -> bool:
    """Asks the table whether learning has kept the ratio to acting."""
    return not self._is_due(self._status().inserts)

  def step(self) -> None:
    """Learns from the next batch, as soon as the rate limiter gives it.

    Or takes none, if batches are expected and one was lost.
    """
    try:
      self.learner.step()
    except datasets.Starved:
      if lost := self._pace.count_anew(self.version):
        what = f'Reverb lost items that it had sampled, or {lost} at most'
        self._coordinator.warn(self.name, what)
      return
    if self._publisher is not None:
      self._publisher.publish(self.version, self.max_priority)

  def report(self) -> reports.Directive:
    """Tells the coordinator how far learning and the tables are."""
    tables = self._statuses()
    table = tables[self._table.name]
    limit = self._table.rate_limit
    ratio = statuses.achieved_ratio(table, limit) if limit else None
    directive = self._coordinator.report_learner(self.learner.steps, tables)
    self._coordinator.write(
      'replay',
      {
        'size': table.size,
        'inserts': table.inserts,
        'samples': table.samples,
        'samples_per_insert': ratio,
        'target_samples_per_insert': _ratio(self._table),
      },
    )
    return directive

  def checkpoint_if_due(self) -> None:
    """Begins a checkpoint when the last one is old enough."""
    self._checkpoints.write_if_due()

  def checkpoint(self) -> str | None:
    """Writes the last checkpoint; returns its path, or None if it failed."""
    return self._checkpoints.write()

  def close(self) -> None:
    """Writes what the log still holds back and ends all threads."""
    self._checkpoints.close()
    self._logger.close()
    self._dataset.close()
    if self._priority_updater is not None:
      self._priority_updater.close()

  def _is_due(self, inserts: int) -> bool:
    return self._pace.is_due(self.version, inserts)

  def _status(self) -> replay.TableStatus:
    return self._statuses()[self._table.name]

  def _statuses(self) -> Mapping[str, replay.TableStatus]:
    client = self._connection.client
    return replay.table_status(client, self._session.tables)


def make_policy(
  session: session_lib.Session,
  network: Any,
  name: str,
  coordinator: coordinator_lib.Coordinator,
) -> programs.Policy:
  """Makes the policy that trains, for any of the environments.

  Args:
    session: What runs.
    network: Of the policy.
    name: Of the node that acts.
    coordinator: Knows how far the run is, if that node was started again.
  """
  experiment = session.experiment
  steps, life = session.steps_per_environment, lifetime.life()
  if life:
    steps = coordinator.poll(name).steps // experiment.num_environments
  return experiment.builder.make_policy(
    network,
    session.spec,
    num_environments=experiment.num_environments,
    seed=session.make_seed(session_lib.POLICY, *([life] if life else [])),
    steps_done=steps,
    evaluation=False,
  )


def take_network(
  session: session_lib.Session,
  learner: core.VariableSource,
  stop: signals.StopSignal,
  update_period: int = 1,
) -> tuple[Any, variables.VariableClient | None]:
  """Returns the network to act with, and what keeps it fresh.

  A `LearnerNode` of the same thread shares its own, which needs no refreshing.
  """
  if isinstance(learner, LearnerNode):
    return learner.network, None
  network = session.experiment.builder.make_network(session.spec)
  client = variables.VariableClient(
    learner,
    network.variables,
    update_period=update_period,
    timeout_seconds=session.experiment.timeout_seconds,
    stop=stop,
  )
  return network, client


class _RemoteLogger(loggers.Logger):
  """Hands rows to the coordinator."""

  def __init__(self, coordinator: coordinator_lib.Coordinator, label: str):
    self._coordinator = coordinator
    self._label = label

  def write(self, data) -> None:
    self._coordinator.write(self._label, dict(data))

  def close(self) -> None:
    pass


def _ratio(table: replay.Table) -> float | None:
  return table.rate_limit.samples_per_insert if table.rate_limit else None
