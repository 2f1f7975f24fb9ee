"""Snapshots of the sampler of recorded data, without items."""

import dataclasses
import json
import os
import zlib
from collections.abc import Iterable, Iterator

import numpy as np
import tree

from repertory.components import offline
from repertory.components.checkpoints import checkpointing
from repertory.components.replay import local
from repertory.components.replay.local import snapshots

_STATE, _PRIORITIES = 'draws.json', 'priorities.npy'


class Fingerprint:
  """Checksum that identifies recorded data.

  Attributes:
    checksum: CRC-32 of all actions, rewards and further leaves so far.
  """

  def __init__(self):
    self.checksum = 0

  def taken_of(
    self, chunks: Iterable[offline.DataSetSteps]
  ) -> Iterator[offline.DataSetSteps]:
    """Yields the chunks unchanged, and updates the checksum."""
    for steps in chunks:
      # Observations follow from the rest, and may be large.
      for leaf in tree.flatten(steps._replace(observation=())):
        data = np.ascontiguousarray(leaf).data
        self.checksum = zlib.crc32(data, self.checksum)
      yield steps


def write(
  directory: str, contents: local.Contents, fingerprint: Fingerprint
) -> str:
  """Writes the sampler's state; returns the snapshot's folder."""
  state = {**dataclasses.asdict(contents), **vars(fingerprint)}
  priorities = state.pop('priorities')
  del state['leaves'], state['actors']
  with snapshots.replacing(directory) as (folder, path):
    np.save(os.path.join(folder, _PRIORITIES), priorities, allow_pickle=False)
    with open(os.path.join(folder, _STATE), 'w') as file:
      json.dump(state, file, indent=2)
  return path


def read(directory: str, fingerprint: Fingerprint) -> local.Contents | None:
  """Reads the sampler's state; None without one for these data.

  Raises:
    CheckpointError: If the file is not such a snapshot.
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
      f'{folder} cannot be read: it is not the state of a sampler.'
    ) from error
  return contents if is_same else None
