"""Curves of a run for TensorBoard."""

import os

from acme.utils.loggers import base

from repertory.components.loggers import scalars


class TensorBoard(base.Logger):
  """Writes the numbers of a row as scalar summaries over a step count.

  Text, lists and None have no curve and are left out. Values are stored as
  float32; NaN and infinity are kept, and TensorBoard marks them.
  """

  def __init__(
    self,
    directory: str | os.PathLike[str],
    step_key: str = 'steps',
    prefix: str = '',
  ):
    """Opens a new events file, as each life of a run has its own.

    Args:
      directory: Where the events file goes.
      step_key: The entry of each row that is the horizontal axis. It has no
        curve itself.
      prefix: Put before each name with a slash, which groups the curves.
    """
    # Those who only step environments load no TensorFlow.
    import tensorflow as tf  # noqa: PLC0415

    self._summary = tf.summary
    self._writer = tf.summary.create_file_writer(os.fspath(directory))
    self._step_key = step_key
    self._prefix = f'{prefix}/' if prefix else ''

  def write(self, data: base.LoggingData) -> None:
    """Writes and flushes a row.

    Raises:
      ValueError: If the row does not say at which step it was taken.
    """
    row = {key: scalars.to_plain(value) for key, value in data.items()}
    step = row.pop(self._step_key, None)
    if not scalars.is_number(step):
      raise ValueError(
        f'data: expected a number under the step key {self._step_key!r}, '
        f'found {step!r} among {sorted(data)}'
      )
    with self._writer.as_default(step=int(step)):
      for key, value in row.items():
        if scalars.is_number(value):
          self._summary.scalar(self._prefix + key, float(value))
    # Leaving the writer's context has flushed it.

  def close(self) -> None:
    """Closes the events file."""
    self._writer.close()
