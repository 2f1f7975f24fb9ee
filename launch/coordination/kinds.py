"""The parts that nodes play in a run; needs no TensorFlow."""

import dataclasses

from repertory.launch.coordination import reports


@dataclasses.dataclass(frozen=True)
class Kind:
  """A part that nodes play.

  Attributes:
    name: Its only node is called so too; of several they are <name>/<index>.
    phase: At whose end its nodes have done their part; None if they are there
      for others until they are shut down.
    serves: Whether others call its nodes. Then one stays, to answer, until it
      is shut down; else it ends when its part is done.
    is_replaceable: Whether the others can do without one for a while, so that
      it may be started again by itself.
    saves: Whether a run that is stopped waits for it to save what it has.
    acts: Whether nobody can act while all of its nodes that are left start.
    has_environments: Whether its nodes step environments, which may hang.
    reports_with: The kind whose only node it asks before it reports; when that
      one falls silent, so does this.
  """

  name: str
  phase: str | None = None
  serves: bool = False
  is_replaceable: bool = False
  saves: bool = False
  acts: bool = False
  has_environments: bool = False
  reports_with: 'Kind | None' = None

  def numbered(self, index: int) -> str:
    """Returns the name of one of several nodes, from 0."""
    return f'{self.name}/{index}'


COORDINATOR = Kind('coordinator', serves=True)
REPLAY = Kind('replay', serves=True)
LEARNER = Kind(
  'learner',
  phase=reports.LEARNING,
  serves=True,
  saves=True,
  reports_with=REPLAY,  # Which tells it how the tables are.
)
INFERENCE = Kind('inference', serves=True, is_replaceable=True, acts=True)
BELLMAN_UPDATER = Kind(
  'bellman_updater', phase=reports.LABELING, is_replaceable=True, acts=True
)
ACTOR = Kind(
  'actor',
  phase=reports.ACTING,
  is_replaceable=True,
  acts=True,
  has_environments=True,
)
ACTOR_LEARNER = Kind(
  'actor_learner',
  phase=reports.ACTING,
  is_replaceable=True,
  acts=True,
  has_environments=True,
)
EVALUATOR = Kind(
  'evaluator',
  phase=reports.EVALUATING,
  is_replaceable=True,
  has_environments=True,
)

KINDS = (
  COORDINATOR,
  REPLAY,
  LEARNER,
  BELLMAN_UPDATER,
  INFERENCE,
  ACTOR,
  ACTOR_LEARNER,
  EVALUATOR,
)

_BY_NAME = {kind.name: kind for kind in KINDS}


def kind_of(node: str) -> Kind:
  """Returns the kind of a node by its name.

  Raises:
    ValueError: If there is none of that name.
  """
  name = node.split('/')[0]
  if name not in _BY_NAME:
    raise ValueError(
      f'node must be called <kind> or <kind>/<index>, with a kind of '
      f'{", ".join(_BY_NAME)}; got {node!r}.'
    )
  return _BY_NAME[name]
