"""TensorBoard logger."""

import os
import socket
import time
import uuid
from typing import Any

from acme.utils.loggers import base

from repertory.components.loggers import scalars


class TensorBoard(base.Logger):
  """Writes the numbers of a row as scalar summaries over a step count.

  Text, lists and None are left out. Values are stored as float32; NaN and
  infinity are kept, and TensorBoard marks them.

  Attributes:
    path: The events file.
  """

  def __init__(self, directory: str | os.PathLike[str], prefix: str = ''):
    """Opens a new events file; each generation of a run has its own.

    Args:
      directory: Directory of the events file.
      prefix: Prefix of each name, with a slash, which groups the curves.
    """
    # Code that only steps environments need not import these.
    from tensorboard.compat.proto import event_pb2  # noqa: PLC0415
    from tensorboard.plugins.scalar import summary_v2  # noqa: PLC0415
    from tensorboard.summary.writer import record_writer  # noqa: PLC0415

    self._make_event: Any = event_pb2.Event
    self._make_scalar = summary_v2.scalar_pb
    os.makedirs(directory, exist_ok=True)
    name = f'{time.time():.0f}.{socket.gethostname()}.{uuid.uuid4().hex}'
    path = os.path.join(directory, f'events.out.tfevents.{name}')
    # Not TensorFlow's writer, which leaks memory for every value; nor
    # TensorBoard's own, whose thread ends silently when the disk is full.
    self._file = open(path, 'wb')  # noqa: SIM115
    self.path = path
    self._writer = record_writer.RecordWriter(self._file)
    self._write(file_version='brain.Event:2')
    self._prefix = f'{prefix}/' if prefix else ''

  def write(self, data: base.LoggingData) -> None:
    """Writes and flushes a row.

    Raises:
      ValueError: If the row has no number of steps.
    """
    row = {key: scalars.to_plain(value) for key, value in data.items()}
    step = row.pop('steps', None)
    if not scalars.is_number(step):
      raise ValueError(
        "data: expected a number under the step key 'steps', "
        f'found {step!r} among {sorted(data)}'
      )
    for key, value in row.items():
      if scalars.is_number(value):
        summary = self._make_scalar(self._prefix + key, float(value))
        self._write(step=int(step), summary=summary)
    self._writer.flush()

  def close(self) -> None:
    """Closes the events file."""
    self._file.close()

  def _write(self, **content) -> None:
    event = self._make_event(wall_time=time.time(), **content)
    self._writer.write(event.SerializeToString())
