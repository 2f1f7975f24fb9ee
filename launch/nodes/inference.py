"""Inference server node."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from repertory.components import learners, transports, variables
from repertory.components.inference import (
  addresses,
  client,
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
    follow: Callable[[], tuple[Any, variables.VariableClient]],
    transport: transports.Transport,
    rows: Sequence[int],
    device: str | None = None,
    evaluates: bool = True,
  ):
    """Compiles the policies and starts the server.

    Args:
      follow: Makes a network and its variable client; called again for the
        evaluator.
      device: Device of the policies; None for TensorFlow's choice.
      evaluates: Whether it also serves the evaluator.
    """
    super().__init__(context)
    self._session = session
    self._transport = transport
    self._reported_at = time.monotonic()
    context.report_start('compiling its policies')
    network, self._variables = follow()
    self._device = device
    policy = policies.make_training_policy(context, session, network)
    self._policy_description = policy.describe(
      range(session.experiment.num_environments)
    )
    self._roles = {
      client.TRAINING: connections.Role(
        self._make_store(policy, rows), self._make_adder, self._variables
      )
    }
    self._evaluated: tuple[Any, variables.VariableClient] | None = None
    if evaluates and session.experiment.evaluation_episodes:
      self._evaluated = follow()
      network, variable_client = self._evaluated
      size = len(policies.evaluation_ids(session))
      self._roles[client.EVALUATION] = connections.Role(
        self._make_store(
          policies.make_evaluation_policy(session, network), [size], size
        ),
        variables=variable_client,
        refreshes_at_start=True,
      )
    self._server = server.InferenceServer(
      addresses.make_address(context.interface),
      session.spec,
      self._roles,
      token=context.token,
      stop=context.stop,
    )

  @property
  def description(self):
    return {
      'address': self._server.address,
      'device': self._device,
      'buckets': list(self._roles[client.TRAINING].store.buckets),
      **self._policy_description,
    }

  @property
  def served(self):
    if self._evaluated is None:
      return {}
    network, variable_client = self._evaluated

    def evaluated_policy() -> Mapping[str, np.ndarray]:
      if variable_client.version < 0:
        raise RuntimeError(
          f'{self.name} has no evaluated policy: it was started after that '
          'evaluation.'
        )
      return learners.save_exported(
        'policy', network.variables, variable_client.version
      )

    return {'evaluated_policy': evaluated_policy}

  def run(self) -> None:
    """Serves until it is shut down.

    A run that stops does not end it: its clients would take that for a failure
    before they learn that the run stops.
    """
    self._variables.update(wait=True)
    self._server.serve()

  def close(self) -> None:
    """Closes the server and the variable clients."""
    with contextlib.ExitStack() as stack:  # Close all, even if one fails.
      if self._evaluated is not None:
        stack.callback(self._evaluated[1].close)
      stack.callback(self._variables.close)
      stack.callback(self._server.close)

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

  def _make_store(
    self, policy, rows: Sequence[int], num_environments: int | None = None
  ) -> state_store.StateStore:
    experiment = self._session.experiment
    return state_store.StateStore(
      policy,
      self._session.spec.observations,
      num_environments or experiment.num_environments,
      make_buckets(rows),
      jit_compile=self._session.jit_compile,
      device=self._device,
    )

  def _make_adder(self, connection: connections.ActorConnection):
    return self._transport.make_adder(
      connection.batch_size,
      priority=lambda: self._variables.max_priority,
      version=lambda: connection.written_version,
    )


def make_buckets(rows: Sequence[int]) -> list[int]:
  """Returns the batch sizes to compile.

  A batch joins several requests of a few sizes. So the buckets are the smallest
  request times 1, 2, 4, …, and the sum of all requests.
  """
  buckets, total = [min(rows)], sum(rows)
  while 2 * buckets[-1] < total:
    buckets.append(2 * buckets[-1])
  return sorted({*buckets, total})
