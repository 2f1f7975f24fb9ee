"""Inference server node."""

import time
from collections.abc import Sequence
from typing import Any

from repertory.components import transports, variables
from repertory.components.inference import (
  connections,
  server,
  state_store,
)
from repertory.launch.coordination import reports
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import node, policies

_REPORT_PERIOD_SECONDS = 1.0


class InferenceNode(node.Node):
  """Computes the actions of all thin actors assigned to it."""

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    *,
    network: Any,
    variable_client: variables.VariableClient,
    transport: transports.Transport,
    rows: Sequence[int],
    device: str | None = None,
  ):
    """Compiles the policy and starts the server.

    Args:
      rows: Batch size of each connection's requests.
      device: Device of the policy; None for TensorFlow's choice.
    """
    super().__init__(context)
    self._reported_at = time.monotonic()
    context.report_start('compiling its policy')
    self._variables = variable_client
    context.closing.callback(variable_client.close)
    policy = policies.make_training_policy(context, session, network)
    num_environments = session.experiment.num_environments
    store = state_store.StateStore(
      policy,
      session.spec.observations,
      num_environments,
      make_buckets(rows),
      jit_compile=session.jit_compile,
      device=device,
    )

    def make_adder(connection: connections.ActorConnection):
      return transport.make_adder(
        connection.batch_size,
        priority=lambda: variable_client.max_priority,
        version=lambda: connection.written_version,
      )

    self._server = server.InferenceServer(
      session.spec,
      store,
      make_adder,
      variable_client,
      interface=context.interface,
      token=context.token,
      stop=context.stop,
    )
    context.closing.callback(self._server.close)
    self._description = {
      'address': self._server.address,
      'device': device,
      'buckets': list(store.buckets),
      **policy.describe(range(num_environments)),
    }

  @property
  def description(self):
    return self._description

  def run(self) -> None:
    """Serves until it is shut down.

    A run that stops does not end it: its clients would take that for a failure
    before they learn that the run stops.
    """
    self._variables.update(wait=True)
    self._server.serve()

  def report(self) -> reports.HeartbeatReply:
    """Reports the figures of the last second to the coordinator."""
    now = time.monotonic()
    if now - self._reported_at < _REPORT_PERIOD_SECONDS:
      return self._coordinator.poll(self.name)
    self._reported_at = now
    row = {
      'version': self._variables.version,
      'age_seconds': self._variables.age_seconds,
      **self._server.report(),
    }
    return self._coordinator.report_row(reports.INFERENCE, self.name, row)


def make_buckets(rows: Sequence[int]) -> list[int]:
  """Returns the batch sizes to compile.

  A batch joins several requests of a few sizes. So the buckets are the smallest
  request times 1, 2, 4, …, and the sum of all requests.
  """
  buckets, total = [min(rows)], sum(rows)
  while 2 * buckets[-1] < total:
    buckets.append(2 * buckets[-1])
  return sorted({*buckets, total})
