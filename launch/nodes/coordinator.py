"""Coordinator node of runs with several processes."""

from collections.abc import Callable, Sequence
from typing import Any

from repertory.components.network import callers
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.coordination import reports
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import node


class CoordinatorNode(node.Node):
  """Serves the coordinator to all nodes; it is shut down last."""

  def __init__(self, context: node.Context, session: session_lib.Session):
    """Makes the coordinator."""
    super().__init__(context)
    self._fencing = callers.Fencing(context.token)
    self._coordinator = coordinator_lib.Coordinator(
      session,
      session.experiment.max_restarts if context.can_restart else 0,
      fencing=self._fencing,
    )
    context.closing.callback(self._coordinator.close)

  @property
  def served(self):
    return {
      name: self._admitting(getattr(self._coordinator, name))
      for name in dir(self._coordinator)
      if not name.startswith('_') and name != 'close'
    }

  def _admitting(self, method: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a method in a check of its caller; see `AuthenticatedClient`."""

    def call(caller: Sequence[Any], *arguments: Any) -> Any:
      self._fencing.check(callers.Caller(*caller))
      return method(*arguments)

    return call

  def report(self) -> reports.HeartbeatReply:
    return self._coordinator.reply()
