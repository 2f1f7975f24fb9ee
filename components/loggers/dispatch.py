"""Logger that writes to several loggers."""

from collections.abc import Callable, Iterable

from acme.utils.loggers import base


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
    """Closes all loggers.

    Raises:
      RuntimeError: If loggers failed, as in `write`.
    """
    self._for_all('close', lambda logger: logger.close())

  def _for_all(self, name: str, call: Callable[[base.Logger], None]) -> None:
    errors = []
    messages = []
    for logger in self._loggers:
      try:
        call(logger)
      except Exception as error:
        errors.append(error)
        messages.append(f'{type(logger).__name__}: {error!r}')
    if errors:
      raise RuntimeError(
        f'{name}() failed in {len(errors)} of {len(self._loggers)} loggers: '
        + '; '.join(messages)
      ) from errors[0]
