"""Memory available to this process and its children."""

import os
from collections.abc import Iterator

import psutil

from repertory.components.config.settings import SettingError


def total_bytes(root: str = '/') -> int:
  """Returns the machine's memory, or the limit of its control group if lower.

  Args:
    root: Parent folder of `proc` and `sys`.
  """
  limits = [psutil.virtual_memory().total]
  for path in _limit_files(root):
    try:
      with open(path) as file:
        text = file.read().strip()
    except OSError:
      continue
    if text.isdigit():  # Else it is 'max'.
      limits.append(int(text))
  return min(limits)


def require(setting: str, num_bytes: float, value: str) -> None:
  """Raises SettingError if something does not fit into memory.

  Args:
    setting: Setting to lower.
    num_bytes: Number of bytes it takes.
    value: Value of the setting, and what takes the memory, in words.
  """
  total = total_bytes()
  if num_bytes > total:
    raise SettingError(
      setting,
      f'must fit into the {gigabytes(total)} of memory; got {value}, '
      f'{gigabytes(num_bytes)}.',
    )


def gigabytes(num_bytes: float) -> str:
  """Formats a size, as in '1.5 GB'."""
  return f'{num_bytes / 1e9:.3g} GB'


def _limit_files(root: str) -> Iterator[str]:
  """Yields the files with the limits of the control group and its ancestors."""
  try:
    with open(os.path.join(root, 'proc/self/cgroup')) as file:
      lines = file.read().splitlines()
  except OSError:
    return
  for line in lines:
    # Version 2 has one line, without controllers.
    _, controllers, group = line.split(':', 2)
    if not controllers:
      folder, name = 'sys/fs/cgroup', 'memory.max'
    elif 'memory' in controllers.split(','):
      folder, name = 'sys/fs/cgroup/memory', 'memory.limit_in_bytes'
    else:
      continue
    # In a container, the path may be that of the host; the container's own
    # group is then the root.
    parts = [part for part in group.split('/') if part]
    for count in range(len(parts) + 1):
      yield os.path.join(root, folder, *parts[:count], name)
