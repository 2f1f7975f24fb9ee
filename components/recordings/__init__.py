"""Episodes in files: written while they are lived, and learned from later."""

from repertory.components.recordings.cutting import Progress, fill
from repertory.components.recordings.data_set import DataError, DataSet, Steps
from repertory.components.recordings.formats import open_data
from repertory.components.recordings.manifest import Manifest, prepare
from repertory.components.recordings.reader import Recording
from repertory.components.recordings.returns import discounted_returns
from repertory.components.recordings.writer import Writer

__all__ = [
  'DataError',
  'DataSet',
  'Manifest',
  'Progress',
  'Recording',
  'Steps',
  'Writer',
  'discounted_returns',
  'fill',
  'open_data',
  'prepare',
]
