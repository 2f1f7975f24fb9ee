"""Repair of line files whose writer was killed in the middle of a line."""

import logging
import os
from collections.abc import Callable, Iterator
from typing import BinaryIO

_BLOCK_BYTES = 1 << 16

_log = logging.getLogger(__name__)


class GarbledError(ValueError):
  """A file has contents that its writer cannot have written."""


def read_whole(path: str) -> Iterator[str]:
  """Yields the lines of a file, see `whole_lines`; none if it is missing.

  Raises:
    GarbledError: If it is not text.
  """
  if not os.path.exists(path):
    return
  with open(path, 'rb') as file:
    yield from whole_lines(file)


def whole_lines(file: BinaryIO) -> Iterator[str]:
  """Yields the lines of an open file, except a torn one at its end.

  A first line is yielded even without a line break: the file may not consist of
  lines at all.

  Raises:
    GarbledError: If it is not text.
  """
  for number, line in enumerate(file):
    if number and not line.endswith(b'\n'):
      return
    try:
      text = line.decode()
    except UnicodeDecodeError as error:
      raise GarbledError(f'line {number + 1} is not text: {error}') from error
    if '\0' in text:
      raise GarbledError(f'line {number + 1} is not text: it has a zero byte')
    yield text


def repair(path: str, is_whole: Callable[[bytes], bool]) -> None:
  """Repairs a file so that it ends with a line break, or is empty.

  Otherwise the next row would be appended to the torn one and both be lost. A
  dropped line is logged as a warning. A missing file is left missing.

  Args:
    path: The file.
    is_whole: Returns whether a last line without a line break is complete. If
      so the line is ended, otherwise it is dropped.
  """
  if not os.path.exists(path):
    return
  with open(path, 'r+b') as file:
    line = _read_unended_line(file)
    if not line:
      return
    if is_whole(line):
      file.seek(0, os.SEEK_END)
      file.write(b'\n')
    else:
      file.seek(-len(line), os.SEEK_END)
      file.truncate()
      _log.warning('Dropped a torn last line, %d bytes: %s', len(line), path)


def _read_unended_line(file: BinaryIO) -> bytes:
  """Returns the text after the last line break, read backwards."""
  start = file.seek(0, os.SEEK_END)
  tail = b''
  while start > 0 and b'\n' not in tail:
    size = min(_BLOCK_BYTES, start)
    start = file.seek(start - size)
    tail = file.read(size) + tail
  return tail.rpartition(b'\n')[2]
