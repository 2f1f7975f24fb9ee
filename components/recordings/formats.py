"""Which kind of data set is in a folder."""

import os

from repertory.components.recordings import (
  data_set,
  manifest,
  minari,
  reader,
)


def open_data(path: str) -> data_set.DataSet:
  """Opens a recording of this package, or a data set of Minari.

  Args:
    path: The folder of a recording; or of a data set of Minari, or its `data`.

  Raises:
    DataError: If it is neither, empty or damaged.
  """
  if not os.path.isdir(path):
    what = 'is a file' if os.path.lexists(path) else 'is not there'
    raise data_set.DataError(path, f'{what}: it must be a folder.')
  if os.path.exists(os.path.join(path, manifest.FILE)):
    return reader.Recording(path)
  found = minari.find_file(path)
  if found is not None:
    return minari.MinariData(path, found)
  raise data_set.DataError(
    path,
    f'is no data set: it has neither a {manifest.FILE} of a recording nor a '
    f'{minari.FILE} of Minari.',
  )
