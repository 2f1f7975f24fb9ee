"""Terminal logger."""

import sys
from typing import Any, TextIO

from acme.utils.loggers import base

from repertory.components.loggers import scalars


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
