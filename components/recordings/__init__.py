"""Offline data: recordings of episodes, and their readers.

`fill`, which cuts episodes into items, is imported lazily: it needs TensorFlow,
which processes that only step environments and record should not load.
"""

from typing import TYPE_CHECKING

from repertory.components import lazy_imports
from repertory.components.recordings.data_set import DataError, DataSet, Steps
from repertory.components.recordings.formats import open_data
from repertory.components.recordings.manifest import Manifest, prepare
from repertory.components.recordings.reader import Recording
from repertory.components.recordings.returns import discounted_returns
from repertory.components.recordings.writer import (
  RecordingError,
  Writer,
  max_bytes,
)

if TYPE_CHECKING:
  from repertory.components.recordings.cutting import fill

__all__ = [
  'DataError',
  'DataSet',
  'Manifest',
  'Recording',
  'RecordingError',
  'Steps',
  'Writer',
  'discounted_returns',
  'fill',
  'max_bytes',
  'open_data',
  'prepare',
]

__getattr__, __dir__ = lazy_imports.modules(__name__, fill='cutting')
