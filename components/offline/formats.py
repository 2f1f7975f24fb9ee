"""Detection of data set formats."""

import os

from repertory.components.offline import data_set, manifest, minari, reader


def open_data(path: str) -> data_set.DataSet:
  """Opens a recording of this package, or a Minari data set.

  Args:
    path: Folder of a recording, or of a Minari data set, or its `data`.

  Raises:
    DataError: If it is neither, empty or damaged.
  """
  if not os.path.isdir(path):
    what = 'a file' if os.path.lexists(path) else 'nothing'
    raise data_set.DataError(path, f'must be a folder; got {what}.')
  if os.path.exists(os.path.join(path, manifest.FILE)):
    return reader.Recording(path)
  found = minari.find_file(path)
  if found is not None:
    return minari.MinariData(path, found)
  minari.check_format(path)
  names = sorted(os.listdir(path))
  raise data_set.DataError(
    path,
    f'must have a {manifest.FILE} of a recording or a '
    f'{minari.FILE} of Minari; got '
    + (f'other files, such as {names[0]}.' if names else 'an empty folder.'),
  )
