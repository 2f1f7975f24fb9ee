"""Early stopping at an evaluation return."""

import dataclasses
import math
from typing import TYPE_CHECKING

from repertory.components.config import settings

if TYPE_CHECKING:
  from repertory.components import loggers


@dataclasses.dataclass(frozen=True)
class StopAtReturn:
  """Stops a run once an evaluation reaches a mean return.

  Attributes:
    stop_at_return: The threshold, inclusive.
  """

  stop_at_return: float

  def __post_init__(self):
    if not math.isfinite(self.stop_at_return):
      raise settings.SettingError(
        'stop_at_return', f'must be a finite number; got {self.stop_at_return}.'
      )

  def __call__(self, status: 'loggers.Status') -> str:
    """Returns the reason to stop; '' to continue."""
    found = status.evaluation_return
    if found is None or found < self.stop_at_return:
      return ''
    return (
      f'after {status.evaluation_steps} steps an evaluation had a mean return '
      f'of {found:.4g}, and {self.stop_at_return:g} is enough'
    )
