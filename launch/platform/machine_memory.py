"""Memory available to this process and its children."""

import contextlib
import pathlib

import psutil

from repertory.components.config.settings import SettingError


def total_bytes(root: str = '/') -> int:
  """Returns the machine's memory, or the limit of its control group if lower.

  Args:
    root: Parent folder of `proc` and `sys`.
  """
  limits = [psutil.virtual_memory().total]
  with contextlib.suppress(OSError):
    lines = pathlib.Path(root, 'proc/self/cgroup').read_text().splitlines()
    # Version 2 has one line, '0::<path>'. In a container the path may be that
    # of the host; the container's own group is then the root.
    path = next((n[4:] for n in lines if n.startswith('0::/')), '')
    group = pathlib.Path(root, 'sys/fs/cgroup', path)
    for folder in (group, *group.parents):
      with contextlib.suppress(OSError, ValueError):  # It may be 'max'.
        limits.append(int((folder / 'memory.max').read_text()))
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
