"""Single-threaded Anakin run with evaluations between calls."""

from repertory.launch.coordination import kinds
from repertory.launch.nodes import anakin_node, run_loop

# Pairs (caller, callee) of nodes.
CALLS = (
  (kinds.LEARNER.name, kinds.COORDINATOR.name),
  (kinds.EVALUATOR.name, kinds.COORDINATOR.name),
)


class AnakinLoop(run_loop.RunLoop):
  """Runs a compiled loop, with evaluations between its calls."""

  def _make_learner(self):
    session = self._session
    self._program = self._add(
      kinds.LEARNER.name,
      lambda context: anakin_node.AnakinNode(context, session),
    )
    return self._program

  def _take_turn(self):
    stop = min(self._max_steps, self._evaluator.next_at)
    with self._named(self._program.name):
      return self._program.advance(stop - self._steps)

  @property
  def _total_steps(self):
    return self._program.total_steps
