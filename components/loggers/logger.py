"""Interface of loggers, Acme's, and loggers without files."""

import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from acme.utils.loggers import base

from repertory.components.loggers import scalars

Logger = base.Logger


class Dispatch(base.Logger):
  """Writes each row to all loggers, in order.

  If one fails, the others still get the row; the error is raised afterwards.
  """

  def __init__(self, loggers: Iterable[base.Logger]):
    """Takes ownership of the loggers: `close` closes them all."""
    self._loggers = tuple(loggers)

  def write(self, data: base.LoggingData) -> None:
    """Writes a row to all loggers.

    Raises:
      RuntimeError: If loggers failed, with all messages, from the first error.
    """
    self._for_all('write', lambda logger: logger.write(data))

  def close(self) -> None:
    """Closes all loggers; raises RuntimeError as `write` does."""
    self._for_all('close', lambda logger: logger.close())

  def _for_all(self, name: str, call: Callable[[base.Logger], None]) -> None:
    failed = []
    for logger in self._loggers:
      try:
        call(logger)
      except Exception as error:
        failed.append((logger, error))
    if failed:
      messages = [f'{type(one).__name__}: {error!r}' for one, error in failed]
      raise RuntimeError(
        f'{name}() failed in {len(failed)} of {len(self._loggers)} loggers: '
        f'{"; ".join(messages)}'
      ) from failed[0][1]


class Terminal(base.Logger):
  """Prints one line per row: `label: key value | key value`."""

  def __init__(self, label: str, stream: TextIO | None = None):
    """Stores label and stream.

    Args:
      label: Prefix of all lines.
      stream: Output stream; by default `sys.stdout` at the time of writing. It
        is never closed.
    """
    self._label = label
    self._stream = stream

  def write(self, data: base.LoggingData) -> None:
    """Prints a row in one piece, its entries in their own order."""
    stream = self._stream or sys.stdout
    entries = (f'{key} {_to_text(value)}' for key, value in data.items())
    stream.write(f'{self._label}: {" | ".join(entries)}\n')
    stream.flush()

  def close(self) -> None:
    """Does nothing: the stream is not owned."""


def _to_text(value: Any) -> str:
  value = scalars.to_plain(value)
  return f'{value:.6g}' if isinstance(value, float) else scalars.to_line(value)
