"""Offline data: recordings of episodes, and their readers.

It needs no TensorFlow, which processes that only step environments and record
should not load.
"""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.offline.data_set import *
  from repertory.components.offline.recording import *
  from repertory.components.offline.writer import *

__all__ = [
  'DataError', 'DataSet', 'DataSetSteps', 'Recording', 'RecordingError',
  'RecordingManifest', 'RecordingWriter', 'discounted_returns', 'open_data',
  'prepare',
]  # fmt: skip

__getattr__, __dir__ = lazy_imports.modules(__name__)
