"""What is told when a node fails."""

import contextlib
import dataclasses
import traceback
from collections.abc import Callable

from repertory.components import settings, signals
from repertory.environments import batch


@dataclasses.dataclass(frozen=True)
class Failure:
  """Why a run failed.

  Attributes:
    node: Name of the node that failed first.
    cause: Its traceback, or how its process ended; of an environment that broke
      its contract the message, which says where.
    is_bad_input: Whether what the run was given is wrong: an environment that
      broke its contract, or data that cannot be read.
    is_lost: Whether its process was killed or hung, rather than raised.
    refused: If a setting is to be changed: its name, and what is wrong with it.
    details: What else is known: who failed thereupon, and what its process
      printed last.
  """

  node: str
  cause: str
  is_bad_input: bool = False
  is_lost: bool = False
  refused: tuple[str, str] | None = None
  details: str = ''

  @property
  def told(self) -> str:
    """All that is known of it."""
    return self.cause + self.details

  @property
  def summary(self) -> str:
    """The last line: of the cause, or of the details if they tell more."""
    # Who was killed had no time to tell why.
    lines = (self.cause if self.is_lost else self.told).strip().splitlines()
    return lines[-1] if lines else ''

  @property
  def not_closed(self) -> str:
    """What is told if it failed when its part was done, and it was closed."""
    return f'{self.node} could not be closed: {self.summary}'


class NodeError(RuntimeError):
  """A node failed, and the run was ended.

  Attributes:
    failure: Which one, and why.
  """

  def __init__(self, failure: Failure):
    super().__init__(f"Node '{failure.node}' failed:\n{failure.told}")
    self.failure = failure

  def add_details(self, details: str) -> None:
    """Adds a line to the message."""
    if details:
      details = f'{self.failure.details}\n{details}'
      self.__init__(dataclasses.replace(self.failure, details=details))


class named(contextlib.AbstractContextManager):  # noqa: N801
  """Turns an exception into the failure of a node.

  Also one that would end a program or a loop without an error, such as
  `SystemExit` and `StopIteration`: an environment has no business to raise it.
  No generator, for Python lets none of those turn `StopIteration` into an error
  of their own.
  """

  def __init__(
    self,
    node: str,
    lets_go: Callable[[BaseException], bool] = lambda error: False,
  ):
    """Names the node.

    Args:
      node: Its name.
      lets_go: Tells of what was raised, besides `Stopped` and `NodeError`,
        whether it is to be raised as it is.
    """
    self._node = node
    self._lets_go = lets_go

  def __exit__(self, kind, error, trace) -> None:
    if error is None or isinstance(error, (signals.Stopped, NodeError)):
      return
    if not self._lets_go(error):
      raise NodeError(of_exception(self._node, error)) from error


def of_exception(node: str, error: BaseException) -> Failure:
  """Describes why a node failed, by what it raised."""
  refused = None
  if isinstance(error, settings.SettingError):
    refused = error.setting, error.problem
  breaks_contract = isinstance(error, batch.EnvironmentContractError)
  return Failure(
    node,
    settings.text_of(error)
    if breaks_contract
    else ''.join(traceback.format_exception(error)),
    is_bad_input=breaks_contract or refused is not None,
    refused=refused,
  )
