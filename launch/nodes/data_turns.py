"""Single-threaded offline run with evaluations between learner steps."""

from collections.abc import Callable, Sequence

from repertory.components import loggers
from repertory.launch.coordination import kinds
from repertory.launch.host import interrupts
from repertory.launch.nodes import data_changes, data_learner, node, turns
from repertory.launch.runs import data_checks, offline
from repertory.launch.runs import session as session_lib

# Pairs (caller, callee) of nodes.
CALLS = (
  (kinds.LEARNER.name, kinds.COORDINATOR.name),
  (kinds.EVALUATOR.name, kinds.COORDINATOR.name),
)


class DataTurns(turns.Turns):
  """Reads the data sets, then runs one learner step per iteration."""

  def __init__(
    self,
    session: session_lib.Session,
    title: str,
    interruption: interrupts.Interruption,
    show: Callable[[loggers.Status], None],
    paths: Sequence[str],
  ):
    """Makes only the coordinator; see `turns.Turns`.

    Args:
      paths: Folders of the data sets.
    """
    super().__init__(session, title, interruption, show)
    self._paths = paths

  def _make_learner(self):
    learner = self._data_learner = self._add(
      kinds.LEARNER.name, self._make_data_learner
    )
    return learner

  def _make_data_learner(
    self, context: node.Context
  ) -> data_learner.DataLearnerNode:
    session = self._session
    context.tell_start('reading its data')
    data = data_checks.open_all(self._paths)
    road = offline.make_road(
      session,
      session.experience,
      data,
      self._interruption,
      checkpoint_directory=session.replay_directory,
    )
    offline.fill(road, session, data, context.tell_start)
    if not road.goes_on:
      data_changes.tell(context, session, self._paths)
    return data_learner.DataLearnerNode(context, session, road)

  def _take_turn(self):
    with self._named(self._data_learner.name):
      self._data_learner.step()
    return 1

  @property
  def _total_steps(self):
    return self._data_learner.version
