"""Repair of line files whose writer was killed in the middle of a line."""

import logging
import os
from collections.abc import Iterator
from typing import BinaryIO

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


def repair(path: str) -> None:
  """Drops a torn last line of a file, if any, with a warning.

  Otherwise the next row would be appended to it and both be lost.
  """
  if not os.path.exists(path):
    return
  with open(path, 'r+b') as file:
    text = file.read()
    end = text.rfind(b'\n') + 1
    if end < len(text):
      file.truncate(end)
      num_bytes = len(text) - end
      _log.warning('Dropped a torn last line, %d bytes: %s', num_bytes, path)
