"""How a table of data is drawn from, in files: a snapshot without items."""

import dataclasses
import json
import os
import zlib
from collections.abc import Iterable, Iterator

import numpy as np
import tree

from repertory.components import checkpointing, recordings
from repertory.components.replay import local
from repertory.components.replay.local import snapshots

_STATE, _PRIORITIES = 'draws.json', 'priorities.npy'


class Fingerprint:
  """Tells data from others.

  Attributes:
    checksum: Tells all that was done so far, and what came of it.
  """

  def __init__(self):
    self.checksum = 0

  def taken_of(
    self, chunks: Iterable[recordings.Steps]
  ) -> Iterator[recordings.Steps]:
    """Yields the chunks as they are, and takes them in."""
    for steps in chunks:
      # Observations follow from the rest, and may be large.
      for leaf in tree.flatten(steps._replace(observation=())):
        data = np.ascontiguousarray(leaf).data
        self.checksum = zlib.crc32(data, self.checksum)
      yield steps


def write(
  directory: str, contents: local.Contents, fingerprint: Fingerprint
) -> str:
  """Writes how data are drawn from; returns the snapshot's folder."""
  state = {**dataclasses.asdict(contents), **vars(fingerprint)}
  priorities = state.pop('priorities')
  del state['leaves'], state['actors']
  with snapshots.replacing(directory) as (folder, path):
    np.save(os.path.join(folder, _PRIORITIES), priorities, allow_pickle=False)
    with open(os.path.join(folder, _STATE), 'w') as file:
      json.dump(state, file, indent=2)
  return path


def read(directory: str, fingerprint: Fingerprint) -> local.Contents | None:
  """Reads how data were drawn from; None if there is nothing of these.

  Raises:
    CheckpointError: If what is there is no such snapshot.
  """
  folder = snapshots.find(directory)
  if folder is None:
    return None
  try:
    with open(os.path.join(folder, _STATE)) as file:
      state = json.load(file)
    is_same = state.pop('checksum') == fingerprint.checksum
    priorities = np.load(os.path.join(folder, _PRIORITIES), allow_pickle=False)
    snapshots.check_priorities(priorities)
    contents = local.Contents(leaves=[], priorities=priorities, **state)
  except (OSError, KeyError, ValueError, TypeError) as error:
    raise checkpointing.CheckpointError(
      f'{folder} cannot be read: it does not tell how data were drawn.'
    ) from error
  return contents if is_same else None
