"""What is told when a node fails."""

import contextlib
import dataclasses
import traceback
from collections.abc import Iterator

from repertory.components import signals
from repertory.environments import batch


@dataclasses.dataclass(frozen=True)
class Failure:
  """Why a run failed.

  Attributes:
    node: Name of the node that failed first.
    cause: Its traceback, or how its process ended.
    is_bad_input: Whether the environment broke its contract, which only its
      author can mend.
    is_lost: Whether its process was killed or hung, rather than raised.
  """

  node: str
  cause: str
  is_bad_input: bool = False
  is_lost: bool = False

  @property
  def summary(self) -> str:
    """The last line of the cause."""
    lines = self.cause.strip().splitlines()
    return lines[-1] if lines else ''


class NodeError(RuntimeError):
  """A node failed, and the run was ended.

  Attributes:
    failure: Which one, and why.
  """

  def __init__(self, failure: Failure):
    super().__init__(f"Node '{failure.node}' failed:\n{failure.cause}")
    self.failure = failure


@contextlib.contextmanager
def named(node: str) -> Iterator[None]:
  """Turns an exception into the failure of a node."""
  try:
    yield
  except (signals.Stopped, NodeError):
    raise
  except Exception as error:
    raise NodeError(of_current_exception(node, error)) from error


def of_current_exception(node: str, error: BaseException) -> Failure:
  """Describes the exception that is being handled."""
  return Failure(
    node,
    traceback.format_exc(),
    is_bad_input=isinstance(error, batch.EnvironmentContractError),
  )
