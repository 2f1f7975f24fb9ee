"""Checkpoints on their way from one node to another, perhaps on another host.

A parcel is a zip archive of a checkpoint's folder, not compressed. It travels
in chunks, so that no call is too large.
"""

import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from repertory.components import checkpointing

_CHUNK_BYTES = 4 << 20


def pack(folder: str, path: str) -> None:
  """Packs a checkpoint's folder.

  Args:
    path: Where the parcel is to be.
  """
  with open(path, 'wb') as file, zipfile.ZipFile(file, 'w') as archive:
    for root, _, names in os.walk(folder):
      for name in sorted(names):
        inside = os.path.relpath(os.path.join(root, name), folder)
        archive.write(os.path.join(root, name), inside)


def unpack(path: str, directory: str) -> None:
  """Adds what was packed to the checkpoints of a directory."""

  def extract(folder: str) -> None:
    os.makedirs(folder)
    with zipfile.ZipFile(path) as archive:
      archive.extractall(folder)

  checkpointing.Checkpointer(directory, max_to_keep=1).add(extract)


def read_state(path: str) -> Mapping[str, Any]:
  """Returns the state of a checkpoint that was packed."""
  with zipfile.ZipFile(path) as archive:
    return json.loads(archive.read(checkpointing.STATE))


def read_arrays(path: str) -> dict[str, np.ndarray]:
  """Returns the arrays of a checkpoint that was packed."""
  with zipfile.ZipFile(path) as archive:
    data = io.BytesIO(archive.read(checkpointing.ARRAYS))
  with np.load(data, allow_pickle=False) as arrays:
    return {name: arrays[name] for name in arrays.files}


def chunks_of(path: str) -> Iterator[tuple[int, bytes, bool]]:
  """Yields where each chunk begins, its bytes, and whether it is the last."""
  size = os.path.getsize(path)
  with open(path, 'rb') as file:
    while True:
      offset = file.tell()
      chunk = file.read(_CHUNK_BYTES)
      is_last = file.tell() >= size
      yield offset, chunk, is_last
      if is_last:
        return


def read_chunk(path: str, offset: int) -> bytes:
  """Returns the bytes of a parcel from an offset on; none at its end."""
  with open(path, 'rb') as file:
    file.seek(offset)
    return file.read(_CHUNK_BYTES)


def write_chunk(path: str, offset: int, chunk: bytes) -> None:
  """Writes a chunk of a parcel that comes, in the order of the offsets.

  Raises:
    ValueError: If it does not follow on what came before.
  """
  with open(path, 'wb' if offset == 0 else 'r+b') as file:
    file.seek(0, os.SEEK_END)
    if file.tell() != offset:
      raise ValueError(
        f'A chunk must follow at {file.tell()} bytes of {path}, got one of '
        f'{offset}.'
      )
    file.write(chunk)


def fetch(path: str, ask: Callable[[int], bytes]) -> None:
  """Writes a parcel that comes from elsewhere.

  Args:
    ask: Returns the bytes from an offset on, none at the end.
  """
  os.makedirs(os.path.dirname(path), exist_ok=True)
  with open(path, 'wb') as file:
    while chunk := ask(file.tell()):
      file.write(chunk)
