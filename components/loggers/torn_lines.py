"""Reads files of lines whose writer was killed in the middle of a line."""

import contextlib
import csv
from collections.abc import Iterator
from typing import BinaryIO


class GarbledError(ValueError):
  """A file has contents that its writer cannot have written."""


def whole_lines(file: BinaryIO) -> Iterator[str]:
  """Yields the lines of an open file, except a torn one at its end.

  Raises:
    GarbledError: If it is not text. A torn first line is checked, too, as the
      file may not consist of lines at all.
  """
  *lines, torn = file.read().split(b'\n')
  for number, line in enumerate(lines or [torn], 1):
    try:
      text = line.decode()
    except UnicodeDecodeError as error:
      raise GarbledError(f'line {number} is not text: {error}') from error
    if '\0' in text:
      raise GarbledError(f'line {number} is not text: it has a zero byte')
    if lines:
      yield f'{text}\n'


def read_csv(file: BinaryIO) -> tuple[list[str], list[list[str]]]:
  """Returns the columns of a CSV file and its rows, which may be shorter.

  Raises:
    GarbledError: If it is not CSV, has no header of names, repeats a column,
      or has longer rows.
  """
  try:
    rows = list(csv.reader(whole_lines(file), strict=True))
  except csv.Error as error:
    raise GarbledError(str(error)) from error
  columns = rows.pop(0) if rows else []
  if len(set(columns)) != len(columns) or any(map(_is_number, columns)):
    raise GarbledError(
      f'expected a header of names without repeated columns, found {columns}'
    )
  longest = max(map(len, rows), default=0)
  if longest > len(columns):
    raise GarbledError(
      f'expected rows of at most {len(columns)} columns, as in the header, '
      f'found {longest}'
    )
  return columns, rows


def _is_number(text: str) -> bool:
  with contextlib.suppress(ValueError):
    float(text or 0)
    return True
  return False
