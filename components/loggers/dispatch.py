"""One row to many loggers."""

from collections.abc import Callable, Iterable

from acme.utils.loggers import base


class Dispatch(base.Logger):
  """Writes each row to all loggers, in order.

  One that fails does not keep the row from the others: what went wrong is
  raised after all have been served.
  """

  def __init__(self, loggers: Iterable[base.Logger]):
    """Takes the loggers over: `close` closes them all."""
    self._loggers = tuple(loggers)

  def write(self, data: base.LoggingData) -> None:
    """Writes a row to all.

    Raises:
      RuntimeError: If a logger failed, with what each said, from the first
        error.
    """
    self._for_all('write', lambda logger: logger.write(data))

  def close(self) -> None:
    """Closes all.

    Raises:
      RuntimeError: If a logger failed, as `write` does.
    """
    self._for_all('close', lambda logger: logger.close())

  def _for_all(self, name: str, call: Callable[[base.Logger], None]) -> None:
    errors = []
    said = []
    for logger in self._loggers:
      try:
        call(logger)
      except Exception as error:
        errors.append(error)
        said.append(f'{type(logger).__name__}: {error!r}')
    if errors:
      raise RuntimeError(
        f'{name}() failed in {len(errors)} of {len(self._loggers)} loggers: '
        + '; '.join(said)
      ) from errors[0]
