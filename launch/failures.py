"""Failures of nodes, each made once from an exception or an exit code."""

import contextlib
import dataclasses
import traceback
from collections.abc import Callable

from repertory.components.config import settings
from repertory.components.runtime import signals


@dataclasses.dataclass(frozen=True)
class Failure:
  """The failure of a node that ended a run.

  Attributes:
    node: Name of the node that failed first.
    cause: Its traceback, or the exit status of its process; for invalid input,
      the error message alone.
    is_bad_input: Whether the input of the run is invalid: an environment that
      broke its contract, a setting, or unreadable data.
    is_lost: Whether the process was killed or hung, rather than raised an
      error.
    refused: Name of an invalid setting and the problem with it, if that is the
      cause.
    details: Further information: consequent failures of other nodes, and the
      last output of the process.
  """

  node: str
  cause: str
  is_bad_input: bool = False
  is_lost: bool = False
  refused: tuple[str, str] | None = None
  details: str = ''

  @property
  def message(self) -> str:
    """The full message: cause and details."""
    return self.cause + self.details

  @property
  def summary(self) -> str:
    """One-line summary: the last line of the message."""
    # A killed process printed nothing about its end.
    lines = (self.cause if self.is_lost else self.message).strip().splitlines()
    return lines[-1] if lines else ''

  @property
  def not_closed(self) -> str:
    """Warning for a node that failed in `close`, after its work was done."""
    return f'{self.node} could not be closed: {self.summary}'


class NodeError(RuntimeError):
  """A node failed, and the run was ended.

  Attributes:
    failure: Name of the node and cause.
  """

  def __init__(self, failure: Failure):
    super().__init__(f"Node '{failure.node}' failed:\n{failure.message}")
    self.failure = failure

  def add_details(self, details: str) -> None:
    """Appends a line to the message."""
    if details:
      details = f'{self.failure.details}\n{details}'
      self.__init__(dataclasses.replace(self.failure, details=details))


class named(contextlib.AbstractContextManager):  # noqa: N801
  """Context manager that converts exceptions to `NodeError`.

  Also `SystemExit` and `StopIteration`, which `contextlib` generators could not
  convert.
  """

  def __init__(
    self, node: str, passes: Callable[[BaseException], bool] = lambda e: False
  ):
    """Names the node; `passes` are exceptions that pass unchanged."""
    self._node = node
    self._passes = passes

  def __exit__(self, kind, error, trace) -> None:
    if error is None or isinstance(error, (signals.Stopped, NodeError)):
      return
    if not self._passes(error):
      # Its message has the traceback.
      raise NodeError(of_exception(self._node, error)) from None


def of_exception(node: str, error: BaseException) -> Failure:
  """Makes a `Failure` from a node's exception."""
  if not isinstance(error, settings.InputError):
    return Failure(node, ''.join(traceback.format_exception(error)))
  refused = None
  if isinstance(error, settings.SettingError):
    refused = error.setting, error.problem
  return Failure(node, settings.text_of(error), True, refused=refused)


def of_exit(node: str, code: int) -> Failure:
  """Makes a `Failure` of a process that ended without reporting one."""
  if code < 0:
    return Failure(
      node, f'Its process ended with signal {-code}.', is_lost=True
    )
  return Failure(node, f'It ended early, with exit code {code}.')
