"""V-MPO: on-policy maximum a posteriori policy optimization."""

from typing import TYPE_CHECKING

from repertory.agents.vmpo.config import PRESETS, VMPOConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.vmpo.learning import VMPOBuilder

__all__ = ['PRESETS', 'VMPOBuilder', 'VMPOConfig']

DESCRIPTION = (
  'On-policy maximum a posteriori policy optimization, '
  'feed-forward or recurrent; discrete or continuous actions.'
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
