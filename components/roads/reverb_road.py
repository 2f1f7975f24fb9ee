"""The road that leads over a replay server."""

from collections.abc import Mapping

from repertory.components import experience as experience_lib
from repertory.components import replay
from repertory.components.roads import learner_end, road
from repertory.components.roads import parts as parts_lib


class ReverbRoad(road.Road):
  """Items are written to a replay server, and batches read from there.

  Each process that has an end has such a road of its own; they meet at the
  server.
  """

  kind = 'reverb'

  def __init__(
    self,
    connection: replay.Connection,
    experience: experience_lib.Experience,
    parts: parts_lib.Parts,
    checkpoint_directory: str = '',
  ):
    """Connects nothing yet.

    Args:
      connection: To the server; its time-out and stop signal end every wait.
      experience: What is carried; the server holds its tables.
      parts: Makes what the ends consist of.
      checkpoint_directory: Where the server writes its checkpoints.
    """
    self._connection = connection
    self._experience = experience
    self._parts = parts
    self._checkpoint_directory = checkpoint_directory

  @property
  def labeled(self) -> 'ReverbRoad | None':
    if self._experience.labeled is None:
      return None
    return ReverbRoad(
      self._connection,
      self._experience.labeled,
      self._parts,
      self._checkpoint_directory,
    )

  def make_writer(self, **settings) -> replay.Writer:
    table = self._experience.table
    return replay.ReverbWriter(self._connection, table, **settings)

  def make_learner_end(self) -> learner_end.LearnerEnd:
    return _ServersEnd(
      self._connection,
      self._experience,
      self._parts,
      self._checkpoint_directory,
    )


class _ServersEnd(learner_end.LearnerEnd):
  """Reads a replay server."""

  kind = ReverbRoad.kind

  def __init__(
    self,
    connection: replay.Connection,
    experience: experience_lib.Experience,
    parts: parts_lib.Parts,
    checkpoint_directory: str,
  ):
    self._connection = connection
    self._checkpoint_directory = checkpoint_directory
    super().__init__(experience, connection)
    self.batches = parts.make_dataset(experience, connection)
    try:
      self.priorities = parts.make_priority_updater(experience, connection)
    except BaseException:
      self.batches.close()
      raise

  def statuses(self) -> Mapping[str, replay.TableStatus]:
    tables = self._experience.tables
    return replay.table_status(self._connection.client, tables)

  def write_snapshot(self) -> str:
    return replay.write_checkpoint(self._connection)

  def is_snapshot_taken(self) -> bool:
    return replay.is_snapshot_taken(self._checkpoint_directory)

  def remove_snapshots(self) -> None:
    replay.remove_checkpoints(self._checkpoint_directory)
