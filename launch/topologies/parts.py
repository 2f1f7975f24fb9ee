"""Nodes shared by topologies with several nodes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from repertory import components
from repertory.launch import launchers, nodes
from repertory.launch.coordination import kinds
from repertory.launch.launchers import node_graph as node_graph_lib
from repertory.launch.nodes import node
from repertory.launch.platform import watchdog

if TYPE_CHECKING:
  from repertory.components import transports, variables
  from repertory.launch.experiments import session as session_lib
  from repertory.launch.nodes import bellman_updater, evaluator, learner


def make_program(
  session: 'session_lib.Session', title: str, *, has_server: bool = True
) -> node_graph_lib.NodeGraph:
  """Makes a node graph with a coordinator and, perhaps, a replay server."""
  # The first call may include the start of the callee.
  planned = node_graph_lib.NodeGraph(
    max(watchdog.START_SECONDS, session.experiment.timeout_seconds)
  )
  coordinator = planned.plan(
    kinds.COORDINATOR.name,
    nodes.coordinator.CoordinatorNode,
    session=session,
    title=title,
  )
  if has_server:
    planned.plan(
      kinds.REPLAY.name,
      nodes.replay.ReplayNode,
      [coordinator],
      session=session,
    )
  return planned


def make_learner(
  context: node.Context, session: 'session_lib.Session'
) -> 'learner.LearnerNode':
  """Makes the learner node, in its thread or process."""
  transport = connect(context, session).learned
  return nodes.learner.LearnerNode(context, session, transport)


def add_bellman_updaters(
  planned: node_graph_lib.NodeGraph,
  session: 'session_lib.Session',
  count: int | None,
) -> None:
  """Adds Bellman updaters to the node graph, if the agent needs them."""
  if session.experience.with_targets is None:
    return
  for index in range(count or 1):
    planned.plan(
      kinds.BELLMAN_UPDATER.numbered(index),
      _make_bellman_updater,
      [kinds.REPLAY.name, kinds.LEARNER.name, kinds.COORDINATOR.name],
      session=session,
      index=index,
    )


def _make_bellman_updater(
  context: node.Context, session: 'session_lib.Session', index: int
) -> 'bellman_updater.BellmanUpdaterNode':
  with nodes.initialization_lock.held(context):
    updater = session.experiment.builder.make_bellman_updater(session.spec)
  names, targets = zip(*updater.variable_client.items())
  variable_client = _follow(
    context,
    session,
    [variable for group in targets for variable in group],
    names=names,
  )
  return nodes.bellman_updater.BellmanUpdaterNode(
    context,
    session,
    updater,
    variable_client=variable_client,
    transport=connect(context, session),
    index=index,
  )


def connect(
  context: node.Context, session: 'session_lib.Session'
) -> 'transports.Transport':
  """Returns a node's experience transport over the replay server."""
  return session.make_transport(nodes.replay.connect(context, session))


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
  with nodes.initialization_lock.held(context):
    context.report_start('making its network')
    network = builder.make_network(session.spec)
  period = update_period or builder.config.variable_update_period
  return network, _follow(
    context, session, network.variables, update_period=period
  )


def _follow(
  context: node.Context,
  session: 'session_lib.Session',
  followers: Sequence[Any],
  **settings: Any,
) -> 'variables.RemoteVariableClient':
  """Makes a client that fetches variables from the learner."""
  return components.variables.RemoteVariableClient(
    launchers.calls.RemoteSource(
      context.peers[kinds.LEARNER.name],
      session.experiment.timeout_seconds,
      context.stop,
    ),
    followers,
    timeout_seconds=session.experiment.timeout_seconds,
    stop=context.stop,
    **settings,
  )


def make_evaluator(
  context: node.Context, session: 'session_lib.Session'
) -> 'evaluator.EvaluatorNode':
  """Makes the evaluator of the learner's variables."""
  return nodes.evaluator.make(
    context, session, lambda: fetch(context, session, update_period=1)
  )


def environment_ids(
  session: 'session_lib.Session', index: int
) -> Sequence[int]:
  """Returns the ids of the environments of an actor."""
  size = session.experiment.num_environments_per_actor
  return range(index * size, (index + 1) * size)
