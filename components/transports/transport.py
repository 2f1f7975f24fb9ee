"""Interface of experience transports, and of the factory of adders."""

import abc
from collections.abc import Callable
from typing import Any, TypeAlias

from repertory.components import adders, replay
from repertory.components.transports import experience as experience_lib
from repertory.components.transports import learner_side

# Kind, in checkpoints, of the experience that a compiled program keeps itself,
# see `anakin`.
COMPILED = 'program'

# Kind of tables behind a server, see `ReverbTransport`.
REVERB = 'reverb'

# Kind of recorded data, see `OfflineTransport`.
OFFLINE = 'data'

# Kind of a run with several learners, each with its own transport.
SHARES = 'parts'


# Creates the adder that cuts steps of a number of slots into items.
AdderFactory: TypeAlias = Callable[
  [experience_lib.Experience, replay.Writer, int], adders.Adder
]


def make_adder(
  experience: experience_lib.Experience, writer: replay.Writer, batch_size: int
) -> adders.Adder:
  """Creates the adder that the experience describes; an `AdderFactory`."""
  return experience.items.make_adder(writer, batch_size)


class Transport(abc.ABC):
  """Interface of experience transports, from actors to the learner.

  It has an actor side per adder, and one learner side; their creators close
  them. If separate nodes compute targets, it ends at those nodes, each with a
  learner side of it, and `learned` leads from them to the learner.

  Attributes:
    kind: Name in checkpoints: snapshots of one kind cannot be read by another.
  """

  kind: str
  _experience: experience_lib.Experience
  _adder_factory: AdderFactory

  @property
  def learned(self) -> 'Transport':
    """The stage that ends at the learner, of `Experience.learned`."""
    return self

  def make_adder(
    self,
    batch_size: int,
    *,
    priority: Callable[[], float],
    version: Callable[[], int],
    max_pending_items: int | None = None,
  ) -> adders.Adder:
    """Creates an adder, the actor side of the transport.

    Args:
      batch_size: Slots of the environment batch.
      priority: Returns the priority of a new item.
      version: Returns the learner steps of the acting variables.
      max_pending_items: Maximum number of pending items without a wait; None
        for the experience's default.
    """
    each = self._experience.max_pending_items_per_environment
    if max_pending_items is None:
      max_pending_items = each * batch_size
    writer = self.make_writer(
      priority=priority, version=version, max_pending_items=max_pending_items
    )
    return self._adder_factory(self._experience, writer, batch_size)

  @abc.abstractmethod
  def make_writer(self, **settings: Any) -> replay.Writer:
    """Creates a writer for finished items, with settings of `replay.Writer`."""

  @abc.abstractmethod
  def make_learner_side(self) -> learner_side.LearnerSide:
    """Creates the learner side, which begins to take items at once."""
