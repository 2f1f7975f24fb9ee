"""Transfer of checkpoints between nodes, possibly on different hosts.

A parcel is an uncompressed zip archive of a checkpoint's folder. It is sent in
chunks, which bounds the size of a call.
"""

import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from repertory.components.checkpoints import checkpointing

_CHUNK_BYTES = 4 << 20


def pack(folder: str, path: str) -> None:
  """Packs a checkpoint's folder into a parcel.

  Args:
    folder: Folder of the checkpoint.
    path: Path of the new parcel.
  """
  with open(path, 'wb') as file, zipfile.ZipFile(file, 'w') as archive:
    for root, _, names in os.walk(folder):
      for name in sorted(names):
        inside = os.path.relpath(os.path.join(root, name), folder)
        archive.write(os.path.join(root, name), inside)


def unpack(path: str, directory: str) -> None:
  """Adds the checkpoint of a parcel to those of a directory."""

  def extract(folder: str) -> None:
    os.makedirs(folder)
    with zipfile.ZipFile(path) as archive:
      archive.extractall(folder)

  checkpointing.Checkpointer(directory, max_to_keep=1).add(extract)


def read_state(path: str) -> Mapping[str, Any]:
  """Returns the state of a packed checkpoint."""
  with zipfile.ZipFile(path) as archive:
    return json.loads(archive.read(checkpointing.STATE))


def read_arrays(path: str) -> dict[str, np.ndarray]:
  """Returns the arrays of a packed checkpoint."""
  with zipfile.ZipFile(path) as archive:
    data = io.BytesIO(archive.read(checkpointing.ARRAYS))
  with np.load(data, allow_pickle=False) as arrays:
    return {name: arrays[name] for name in arrays.files}


def chunks_of(path: str) -> Iterator[tuple[int, bytes, bool]]:
  """Yields offset, bytes and an is-last flag of each chunk of a parcel."""
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
  """Returns the chunk of a parcel at an offset; b'' at its end."""
  with open(path, 'rb') as file:
    file.seek(offset)
    return file.read(_CHUNK_BYTES)


def write_chunk(path: str, offset: int, chunk: bytes) -> None:
  """Writes a received chunk of a parcel; chunks come in order.

  Raises:
    ValueError: If it does not begin at the end of the previous chunk.
  """
  with open(path, 'wb' if offset == 0 else 'r+b') as file:
    file.seek(0, os.SEEK_END)
    if file.tell() != offset:
      raise ValueError(
        f'offset of a chunk of {path} must be {file.tell()} bytes, got '
        f'{offset}.'
      )
    file.write(chunk)


def fetch(path: str, ask: Callable[[int], bytes]) -> None:
  """Downloads a parcel.

  Args:
    path: Path of the new parcel.
    ask: Returns the chunk at an offset, b'' at the end.
  """
  os.makedirs(os.path.dirname(path), exist_ok=True)
  with open(path, 'wb') as file:
    while chunk := ask(file.tell()):
      file.write(chunk)
