"""Node kinds of a run. Needs no TensorFlow."""

import dataclasses

from repertory.launch.coordination import reports


@dataclasses.dataclass(frozen=True)
class Kind:
  """Node kind.

  Attributes:
    name: Name of its only node; several nodes are named <name>/<index>.
    phase: Run phase that ends when all its nodes are done; None for servers
      that run until they are shut down.
    serves: Whether other nodes call its nodes. Then a node stays up until it is
      shut down, else it ends when it is done.
    is_replaceable: Whether a single node can be restarted while the others
      wait.
    saves: Whether a stopped run waits for it to write its checkpoint.
    acts: Whether acting needs at least one of its nodes running.
    has_environments: Whether its nodes step environments, which may hang.
  """

  name: str
  phase: str | None = None
  serves: bool = False
  is_replaceable: bool = False
  saves: bool = False
  acts: bool = False
  has_environments: bool = False

  def numbered(self, index: int) -> str:
    """Returns the name of one of several nodes; indices begin at 0."""
    return f'{self.name}/{index}'


COORDINATOR = Kind('coordinator', serves=True)
REPLAY = Kind('replay', serves=True)
LEARNER = Kind('learner', phase=reports.LEARNING, serves=True, saves=True)
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
ACTOR_LEARNER = dataclasses.replace(ACTOR, name='actor_learner')
EVALUATOR = Kind(
  'evaluator',
  phase=reports.EVALUATING,
  is_replaceable=True,
  has_environments=True,
)

KINDS = (
  COORDINATOR, REPLAY, LEARNER, BELLMAN_UPDATER, INFERENCE, ACTOR,
  ACTOR_LEARNER, EVALUATOR,
)  # fmt: skip

_BY_NAME = {kind.name: kind for kind in KINDS}


def kind_of(node: str) -> Kind:
  """Returns the kind of a node by its name.

  Raises:
    ValueError: If the name has no known kind.
  """
  name = node.split('/')[0]
  if name not in _BY_NAME:
    raise ValueError(
      f'node must be named <kind> or <kind>/<index>, with a kind of '
      f'{", ".join(_BY_NAME)}, got {node!r}.'
    )
  return _BY_NAME[name]
