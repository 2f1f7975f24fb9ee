"""TensorBoard logger."""

import io
import os
import socket
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from repertory.components.loggers import row_files, scalars


class TensorBoard(row_files.RowFile):
  """Writes the numbers of a row as scalar summaries over a step count.

  Text, lists and None are left out. Values are stored as float32; NaN and
  infinity are kept, and TensorBoard marks them.
  """

  def __init__(self, directory: str | os.PathLike[str], prefix: str = ''):
    """Begins a new events file; each generation of a run has its own.

    Args:
      directory: Directory of the events file.
      prefix: Prefix of each name, with a slash, which groups the curves.
    """
    name = f'{time.time():.0f}.{socket.gethostname()}.{uuid.uuid4().hex}'
    self._path = os.path.join(directory, f'events.out.tfevents.{name}')
    self._prefix = f'{prefix}/' if prefix else ''
    self._header = _to_record(file_version='brain.Event:2')
    row_files.append(self._path, b'', self._header)

  def write_all(self, rows: Iterable[Mapping[str, Any]]) -> None:
    """Appends several rows.

    Raises:
      ValueError: If a row has no number of steps.
    """
    # Code that only steps environments need not import it.
    from tensorboard.plugins.scalar import summary_v2  # noqa: PLC0415

    records = []
    for data in rows:
      row = scalars.to_plain(data)
      step = row.pop('steps', None)
      if not scalars.is_number(step):
        raise ValueError(
          "data: expected a number under the step key 'steps', "
          f'found {step!r} among {sorted(data)}'
        )
      for key, value in row.items():
        if scalars.is_number(value):
          summary = summary_v2.scalar_pb(self._prefix + key, float(value))
          records.append(_to_record(step=int(step), summary=summary))
    row_files.append(self._path, b''.join(records), self._header)


def _to_record(**content: Any) -> bytes:
  """Returns an event as it is stored.

  Not with TensorFlow's writer, which leaks memory for every value; nor with
  TensorBoard's own, whose thread ends silently when the disk is full.
  """
  from tensorboard.compat.proto import event_pb2  # noqa: PLC0415
  from tensorboard.summary.writer import record_writer  # noqa: PLC0415

  make_event: Any = event_pb2.Event
  event = make_event(wall_time=time.time(), **content)
  buffer = io.BytesIO()
  record_writer.RecordWriter(buffer).write(event.SerializeToString())
  return buffer.getvalue()
