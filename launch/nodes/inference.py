"""An inference server as a node: what it acts with, serves and reports."""

import time
from collections.abc import Sequence

from repertory.components import (
  adders,
  compilation,
  core,
  replay,
  signals,
  variables,
)
from repertory.components.inference import (
  addresses,
  client,
  lanes,
  server,
  state_store,
)
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.coordination import reports
from repertory.launch.nodes import evaluation, nodes
from repertory.launch.runs import session as session_lib

_REPORT_PERIOD_SECONDS = 1.0


class InferenceNode:
  """Acts for all thin actors that are assigned to it."""

  def __init__(
    self,
    session: session_lib.Session,
    name: str,
    source: core.VariableSource | variables.Publisher,
    connection: replay.Connection,
    coordinator: coordinator_lib.Coordinator,
    *,
    rows: Sequence[int],
    device: str | None = None,
    evaluates: bool = True,
  ):
    """Compiles the policies and starts to listen.

    Args:
      session: What runs.
      name: Of this node, 'inference/<index>'.
      source: Publishes the learner's variables, if that is in this process;
        else what they are fetched from.
      connection: To the replay server; its stop signal ends `run`.
      coordinator: Takes the figures.
      rows: Environments of each request that will come.
      device: Where the policies run; None for TensorFlow's choice.
      evaluates: Whether the evaluator is assigned to it, too.
    """
    self.name = name
    self._session = session
    self._connection = connection
    self._coordinator = coordinator
    self._stop: signals.StopSignal = connection.stop
    self._reported_at = time.monotonic()
    with compilation.on_device(device):
      network = session.experiment.builder.make_network(session.spec)
    self._variables = self._follow(source, network)
    policy = nodes.make_policy(session, network, name, coordinator)
    roles = {
      client.TRAINING: lanes.Role(
        self._make_store(policy, rows, device), self._make_adder
      )
    }
    if evaluates and session.experiment.evaluation_episodes:
      roles[client.EVALUATION] = self._make_evaluation(network, device)
    self._server = server.InferenceServer(
      addresses.make_unix_address(),
      session.spec,
      roles,
      variables=self._variables,
      stop=connection.stop,
    )
    self.address = self._server.address
    coordinator.register(
      name,
      {
        'address': self.address,
        'device': device,
        'buckets': list(roles[client.TRAINING].store.buckets),
        **policy.describe(range(session.experiment.num_environments)),
      },
    )

  def run(self) -> None:
    """Serves until the stop signal is set."""
    self._variables.update(wait=True)
    self._server.serve()

  def stop(self) -> None:
    """Ends `run`."""
    self._stop.set()

  def close(self) -> None:
    """Ends all connections and threads."""
    self._server.close()
    self._variables.close()

  def report(self) -> reports.Directive:
    """Tells the coordinator the figures of the last second."""
    now = time.monotonic()
    if now - self._reported_at < _REPORT_PERIOD_SECONDS:
      return self._coordinator.poll(self.name)
    self._reported_at = now
    return self._coordinator.report_inference(
      self.name,
      self._variables.version,
      self._variables.age_seconds,
      self._server.report(),
    )

  def _follow(self, source, network):
    if isinstance(source, variables.Publisher):
      return variables.PublishedVariables(source, network.variables)
    experiment = self._session.experiment
    return variables.VariableClient(
      source,
      network.variables,
      update_period=experiment.builder.config.variable_update_period,
      timeout_seconds=experiment.timeout_seconds,
      stop=self._stop,
    )

  def _make_evaluation(self, network, device) -> lanes.Role:
    policy, ids = evaluation.make_policy(
      self._session, network, self._session.experiment.evaluation_episodes
    )
    store = self._make_store(policy, [len(ids)], device, len(ids))
    return lanes.Role(store, is_up_to_date=True)

  def _make_store(
    self, policy, rows: Sequence[int], device, num_environments=None
  ) -> state_store.StateStore:
    experiment = self._session.experiment
    return state_store.StateStore(
      policy,
      self._session.spec.observations,
      num_environments or experiment.num_environments,
      make_buckets(rows),
      jit_compile=experiment.builder.config.jit_compile,
      device=device,
    )

  def _make_adder(self, lane: lanes.Lane):
    builder = self._session.experiment.builder
    return builder.make_adder(
      adders.Destination(
        self._connection,
        self._session.tables[0],
        priority=lambda: self._variables.max_priority,
        version=lambda: lane.written_version,
        max_pending_items=(
          builder.max_pending_items_per_environment * lane.batch_size
        ),
      ),
      lane.batch_size,
    )


def make_buckets(rows: Sequence[int]) -> list[int]:
  """Chooses batch sizes to compile.

  Requests come in a few sizes; batches are mostly some of them together. So the
  buckets are the smallest request times 1, 2, 4, …, and all of them together.

  Args:
    rows: Of each request that will come.
  """
  buckets, total = [min(rows)], sum(rows)
  while 2 * buckets[-1] < total:
    buckets.append(2 * buckets[-1])
  return sorted({*buckets, total})
