"""Nodes shared by topologies with several nodes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from repertory import components
from repertory.launch import launchers, nodes
from repertory.launch.coordination import kinds
from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.nodes import node
from repertory.launch.platform import watchdog

if TYPE_CHECKING:
  from repertory.components import transports, variables
  from repertory.launch.experiments import session as session_lib


def make_program(
  session: 'session_lib.Session', *, has_server: bool = True
) -> launcher_lib.NodeGraph:
  """Makes a node graph with a coordinator and, perhaps, a replay server."""
  # The first call may include the start of the callee.
  planned = launcher_lib.NodeGraph(
    max(watchdog.START_SECONDS, session.experiment.timeout_seconds)
  )
  planned.plan(
    kinds.COORDINATOR.name, nodes.coordinator.CoordinatorNode, session=session
  )
  if has_server:
    planned.plan(
      kinds.REPLAY.name,
      nodes.replay.ReplayNode,
      session=session.without_callbacks(),
    )
  return planned


def make_learner(
  context: node.Context, session: 'session_lib.Session'
) -> node.Node:
  """Makes the learner node, in its thread or process."""
  transport = connect(context, session).learned
  return nodes.learner.LearnerNode(context, session, transport)


def connect(
  context: node.Context, session: 'session_lib.Session'
) -> 'transports.Transport':
  """Returns a node's experience transport over the replay server."""
  address = context.find_address(
    kinds.REPLAY.name, session.experiment.timeout_seconds
  )
  return session.connect(address, context.stop, context.token)


def fetch(
  context: node.Context,
  session: 'session_lib.Session',
  update_period: int | None = None,
) -> 'tuple[Any, variables.RemoteVariableClient]':
  """Makes a network and a client that fetches its variables from the learner.

  Args:
    update_period: Steps between fetches; None for the agent's
      `variable_update_period`.
  """
  builder = session.experiment.builder
  with context.initializing():
    context.report_start('making its network')
    network = builder.make_network(session.spec)
  period = update_period or builder.config.variable_update_period
  return network, make_variable_client(
    context, session, network.variables, update_period=period
  )


def make_variable_client(
  context: node.Context,
  session: 'session_lib.Session',
  copies: Sequence[Any],
  **settings: Any,
) -> 'variables.RemoteVariableClient':
  """Makes a client that fetches variables from the learner into copies."""
  return components.variables.RemoteVariableClient(
    launchers.calls.RemoteSource(
      context.peers[kinds.LEARNER.name],
      session.experiment.timeout_seconds,
      context.stop,
    ),
    copies,
    timeout_seconds=session.experiment.timeout_seconds,
    stop=context.stop,
    **settings,
  )


def make_evaluator(
  context: node.Context, session: 'session_lib.Session'
) -> node.Node:
  """Makes the evaluator of the learner's variables."""
  return nodes.evaluator.EvaluatorNode(
    context, session, lambda: fetch(context, session, update_period=1)
  )


def environment_ids(
  session: 'session_lib.Session', index: int
) -> Sequence[int]:
  """Returns the ids of the environments of an actor."""
  size = session.experiment.num_environments_per_actor
  return range(index * size, (index + 1) * size)
