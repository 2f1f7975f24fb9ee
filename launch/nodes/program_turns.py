"""A compiled program that takes turns with the evaluator."""

from repertory.launch.nodes import program, turns

# Who calls whom.
CALLS = (('learner', 'coordinator'), ('evaluator', 'coordinator'))


class ProgramTurns(turns.Turns):
  """One program acts and learns; evaluations come between its calls."""

  def _make_learner(self):
    session = self._session
    return self._add(
      'learner', lambda context: program.ProgramNode(context, session)
    )

  def _take_turn(self):
    stop = min(self._max_steps, self._evaluator.next_at)
    with self._named(self._learner.name):
      return self._learner.advance(stop - self._steps)

  @property
  def _total_steps(self):
    return self._learner.total_steps
