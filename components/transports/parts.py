"""Factories for the parts of a transport."""

from repertory.components import adders, datasets, replay
from repertory.components.transports import experience as experience_lib


class TransportParts:
  """Creates the parts of a transport from the experience's description.

  An agent overrides a method where a description is not enough. Methods for
  replay servers are called by `ReverbTransport` only; other transports
  reject agents that override them.
  """

  def make_adder(
    self,
    experience: experience_lib.Experience,
    writer: replay.Writer,
    batch_size: int,
  ) -> adders.Adder:
    """Creates the adder that cuts an actor's steps into items.

    Args:
      experience: Description of the items.
      writer: Writer of the items.
      batch_size: Slots of the actor's environment batch.
    """
    return experience.items.make_adder(writer, batch_size)

  def make_dataset(
    self,
    experience: experience_lib.Experience,
    connection: replay.Connection,
  ) -> datasets.ReplayDataset:
    """Creates the learner's batches from a replay server."""
    return datasets.ReplayDataset(
      connection,
      experience.table,
      experience.batch_size,
      prefetch=experience.prefetch,
    )

  def make_priority_updater(
    self,
    experience: experience_lib.Experience,
    connection: replay.Connection,
  ) -> replay.PriorityUpdater | None:
    """Creates the priority updates of a server; None without priorities."""
    if experience.min_priority is None:
      return None
    return replay.PriorityUpdater(
      connection, experience.table.name, experience.min_priority
    )
