"""What ends of roads are made of, which an agent may replace."""

from repertory.components import adders, datasets, replay
from repertory.components import experience as experience_lib


class Parts:
  """Makes the parts of a road's ends as the experience describes them.

  An agent overrides a method where a description does not reach. Those that
  read a replay server are for the road over one alone; other roads refuse an
  agent that overrides them.
  """

  def make_adder(
    self,
    experience: experience_lib.Experience,
    writer: replay.Writer,
    batch_size: int,
  ) -> adders.Adder:
    """Makes what cuts the steps of an actor into items.

    Args:
      experience: Says which.
      writer: Takes them.
      batch_size: Slots of the actor's environment batch.
    """
    return experience.items.make_adder(writer, batch_size)

  def make_dataset(
    self,
    experience: experience_lib.Experience,
    connection: replay.Connection,
  ) -> datasets.ReplayDataset:
    """Makes the learner's batches, where a replay server has the items."""
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
    """Makes what writes priorities back to a server; None if there are none."""
    if experience.min_priority is None:
      return None
    return replay.PriorityUpdater(
      connection, experience.table.name, experience.min_priority
    )
